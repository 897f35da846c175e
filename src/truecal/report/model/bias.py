"""How biased each estimator is on data like these, from datasets simulated in a world fitted to them."""

from dataclasses import dataclass

import truecal as tc
from truecal.errors import InputError
from truecal.estimate import Estimator
from truecal.report.records import Absent

_DATASETS = 100
_MOST_ROWS = 10_000
_FEWEST_ROWS = 100
# Beyond as many rows a world is fitted to cells of neighbouring scores, whose sums are those of the rows.
_MOST_CELLS = 50_000
# How well a world fits is judged on datasets of the data's own size, which takes minutes beyond.
_MOST_FITTED = 1_000_000
_ESTIMATORS: dict[str, Estimator] = {
    "Rank series": tc.RankSeries(),
    "Debiased": tc.DebiasedECE(),
    "Monotone sweep": tc.SweepECE(),
    "Nearest neighbours": tc.NearestECE(),
    "Binned, 15 of equal width": tc.BinnedECE(norm=2),
    "Isotonic (CORP)": tc.IsotonicError(),
}


@dataclass(frozen=True)
class BiasRow:
    """One estimator over the simulated datasets."""

    name: str
    mean: float
    bias: float
    std: float
    rmse: float


@dataclass(frozen=True)
class BiasRecord:
    """Every estimator against the known truth; `unlike` where the simulated data differ from the given ones."""

    rows: tuple[BiasRow, ...]
    truth: float
    n: int
    datasets: int
    unlike: bool


def bias(profile: tc.Profile, *, rng: int) -> BiasRecord | Absent:
    """Bias and spread of the root-mean-square estimators; absent where no world can be fitted."""
    rows = round(float(profile.size[0]))
    if rows < _FEWEST_ROWS:
        return Absent(f"{rows} rows are too few to simulate data like them; {_FEWEST_ROWS} are needed.")
    if rows > _MOST_FITTED:
        return Absent(
            f"With {rows:,} predictions the bias of an estimator is far below its interval; it is simulated for up to "
            f"{_MOST_FITTED:,}."
        )
    size = min(rows, _MOST_ROWS)
    try:
        simulated = tc.lab.how_biased(
            profile.coarsen(_MOST_CELLS), estimators=_ESTIMATORS, n=size, m=_DATASETS, rng=rng
        )
    except InputError as error:
        return Absent(f"No world could be fitted to these data: {error}.")
    return BiasRecord(
        rows=tuple(
            BiasRow(t.estimator_name, float(t.values.mean()), float(t.bias), float(t.std), float(t.rmse))
            for t in simulated.trials
        ),
        truth=float(simulated.trials[0].truth),
        n=size,
        datasets=_DATASETS,
        unlike=abs(float(simulated.goodness.z)) > 3,
    )
