"""How biased each estimator is on data like these, from datasets simulated in a world fitted to them."""

from typing import Any

from truecal.errors import InputError
from truecal.estimate import BinnedECE, DebiasedECE, Estimator, IsotonicError, NearestECE, RankSeries, SweepECE
from truecal.profile import Profile

_DATASETS = 100
_MOST_ROWS = 10_000
_FEWEST_ROWS = 100
_ESTIMATORS: dict[str, Estimator] = {
    "Rank series": RankSeries(),
    "Debiased": DebiasedECE(),
    "Monotone sweep": SweepECE(),
    "Nearest neighbours": NearestECE(),
    "Binned, 15 of equal width": BinnedECE(norm=2),
    "Isotonic (CORP)": IsotonicError(),
}


def bias(profile: Profile, *, rng: int) -> dict[str, Any]:
    """Bias and spread of the root-mean-square estimators as a record; with "absent" and the reason where no world can be fitted."""
    rows = round(float(profile.size[0]))
    if rows < _FEWEST_ROWS:
        return {"absent": f"{rows} rows are too few to simulate data like them; {_FEWEST_ROWS} are needed."}
    from truecal.lab import how_biased

    size = min(rows, _MOST_ROWS)
    try:
        found = how_biased(profile, estimators=_ESTIMATORS, n=size, m=_DATASETS, rng=rng)
    except InputError as error:
        return {"absent": f"No world could be fitted to these data: {error}."}
    return {
        "rows": [
            {
                "name": trial.estimator_name,
                "mean": float(trial.values.mean()),
                "bias": float(trial.bias),
                "std": float(trial.std),
                "rmse": float(trial.rmse),
            }
            for trial in found.trials
        ],
        "truth": float(found.trials[0].truth),
        "n": size,
        "datasets": _DATASETS,
        "unlike": abs(float(found.goodness.z)) > 3,
    }
