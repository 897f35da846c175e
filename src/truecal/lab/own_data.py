"""Bias of estimators on data like the user's, of the same size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import ErrorFunction, Estimator
from truecal.lab.fit import Goodness, WorldFit, fit_world, goodness
from truecal.lab.trials import Run, Trial, all_estimators, table_of, trials
from truecal.lab.worlds import Seed, World
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.table import Frame

_MAX_ROWS = 10_000_000  # by choice: largest dataset that is planned
_CHECKED_ROWS = 20_000_000  # by choice: simulated for the goodness of fit, in at least 20 datasets


@dataclass(frozen=True)
class HowBiased:
    """Hold a world fitted to data, its goodness of fit, and bias and spread of each estimator in it.

    Parameters
    ----------
    fit : WorldFit
        The fitted distribution of scores and curves.
    world : World
        The world that was simulated.
    goodness : Goodness
        ECE of the data beside that of simulated datasets.
    trials : tuple of Trial
        One trial per estimator.

    See Also
    --------
    how_biased : Simulate the trials.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(2, 0.5, 1000)
    >>> preds = tc.Predictions.from_probs(p, rng.random(1000) < p)
    >>> answer = tc.lab.how_biased(preds, estimators={"ECE": tc.BinnedECE()}, m=20)
    >>> answer.table["estimator"].tolist()
    ['ECE']
    """

    fit: WorldFit
    world: World
    goodness: Goodness
    trials: tuple[Trial, ...]

    @property
    def table(self) -> Frame:
        """Trials as a table, one row per estimator and n, by `table_of`."""
        return table_of(self.trials)

    def __str__(self) -> str:
        """Write the simulated world, the check against the data, and a table with bias, standard deviation and RMSE of every
        estimator.
        """
        best = self.fit.best
        lines = [
            f"simulated world: scores {self.world.scores.describe()}, "
            f"curve {best.name} (b0 {best.curve.b0:.3g}, b1 {best.curve.b1:.3g}), "
            f"true error {self.world.true_error():.4f} (norm 2)",
            f"check: ECE of your data {self.goodness.on_data:.4f}, of simulated data "
            f"{self.goodness.simulated:.4f} +- {self.goodness.simulated_std:.4f} (standard deviation)",
        ]
        if abs(self.goodness.z) > 3:
            lines.append("warning: simulated data differ from yours; the biases below may not be those on your data")
        columns = self.table.select("estimator", "n", "truth", "mean", "bias", "bias_se", "std", "rmse")
        note = "truth: true error in the norm of the estimator; bias: mean less truth; bias_se: its standard error"
        return "\n".join([*lines, "", columns.to_text(), note])


@takes_arrays
def how_biased(
    preds: tc.Predictions | tc.profile.Profile,
    *,
    estimators: Mapping[str, Estimator | ErrorFunction] | None = None,
    n: int | None = None,
    m: int = 200,
    lens: Lens | None = None,
    scores: Literal["empirical", "beta"] = "empirical",
    rng: Seed = 0,
    run: Run | None = None,
) -> HowBiased:
    """Simulate the bias of estimators in a world fitted to the data.

    Parameters
    ----------
    preds : Predictions or Profile
        The data.
    estimators : mapping of str to Estimator or callable, default None
        Estimators by name; None is every estimator of truecal.
    n : int, default None
        Rows of each simulated dataset; None is the number of rows of the data.
    m : int, default 200
        Number of simulated datasets.
    lens : Lens, default None
        Lens through which predictions are judged; None is the positive class of two and the top label of more.
    scores : {"empirical", "beta"}, default "empirical"
        Simulated scores: distributed like those of the data, or by the fitted Beta.
    rng : int, Generator, SeedSequence or None, default 0
        Seed.
    run : Run, default None
        Worker processes, cache and progress; None is ``Run()``.

    Returns
    -------
    HowBiased
        The fitted world, its goodness of fit and the trials.

    Raises
    ------
    InputError
        If no world can be fitted to the data, or datasets of more than 10 million rows are asked for.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(2, 0.5, 2000)
    >>> preds = tc.Predictions.from_probs(p, rng.random(2000) < p**1.3)
    >>> answer = tc.lab.how_biased(preds, estimators={"EW": tc.BinnedECE(norm=2), "ours": tc.RankSeries()}, m=50)
    >>> biases = {t.estimator_name: abs(t.bias) for t in answer.trials}
    >>> biases["ours"] < biases["EW"] < 0.02
    True
    """
    check_predictions(preds, tc.profile.Profile)
    check_lens(lens)
    profile = preds if isinstance(preds, tc.profile.Profile) else (lens or default_lens(preds))(preds)
    options.choice(scores, ("empirical", "beta"), "scores")
    fit = fit_world(profile)
    world = fit.world if scores == "beta" else fit.empirical_world
    size = round(float(profile.size[0])) if n is None else n
    if isinstance(size, int) and size > _MAX_ROWS:
        raise InputError(f"{m} datasets of {size:,} rows are too many to simulate; give n of at most {_MAX_ROWS:,}")
    results = trials(
        all_estimators() if estimators is None else estimators,
        {"fitted": world},
        n=[size],
        m=m,
        rng=rng,
        run=run,
    )
    checked = min(m, max(20, _CHECKED_ROWS // max(1, round(float(profile.size[0])))))
    return HowBiased(fit, world, goodness(fit, world, m=checked, rng=rng), tuple(results))
