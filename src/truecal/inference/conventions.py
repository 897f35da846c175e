"""`like`: which estimator and lens give the number that another tool prints, and why it differs from ours."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Estimator
from truecal.estimators.estimate import Estimate
from truecal.estimators.literature import AdaptiveECE, ConventionECE
from truecal.estimators.smoothing import SmoothECE
from truecal.inference.measurement import measure
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import ClassWise, OneClass, TopLabel
from truecal.predictions.predictions import Predictions


@dataclass(frozen=True)
class Convention:
    """How another tool measures: unpack it as `estimator, lens`, or call `measure(preds)`.

    Attributes
    ----------
    tool : str
        Whose convention.
    estimator : Estimator
        Reproduces the tool's number.
    lens : Lens
        What the tool looks at.
    differs : tuple of str
        What this convention does that truecal's own definitions do not, sentence by sentence.
    tolerance : float
        How closely the tool's number is met: 1e-9, or 1e-6 where the tool computes in single precision.

    See Also
    --------
    like : Returns it.
    """

    tool: str
    estimator: Estimator
    lens: Lens
    differs: tuple[str, ...] = ()
    tolerance: float = 1e-9

    def __iter__(self) -> Iterator[Any]:
        """Iterate over estimator and lens, so that `estimator, lens = convention` works."""
        return iter((self.estimator, self.lens))

    def measure(self, preds: Predictions, *, level: float = 0.95, rng: int | np.random.Generator = 0) -> Estimate:
        """Compute the tool's number, with the interval and test that it lacks.

        Parameters
        ----------
        preds : Predictions
            What to measure.
        level : float, default 0.95
            Level of the interval.
        rng : int or numpy.random.Generator, default 0
            Seed or generator of resamples.

        Returns
        -------
        Estimate
        """
        return measure(preds, estimator=self.estimator, lens=self.lens, level=level, rng=rng)


_SINGLE = "sums and edges are in single precision"
_OWN_BIN = "a score of exactly 1 has a bin of its own"
_OPEN_LEFT = "a score on an edge falls into the lower bin"
_LINSPACE = "edges are accumulated steps, so that a score such as 0.3 may fall on the other side"
_BINARY = {
    "torchmetrics": {"task": "binary"},
    "netcal": {"task": "binary"},
    "uncertainty-calibration": {"mode": "binary"},
}
_NORMS = {"l1": 1.0, "l2": 2.0, "max": np.inf}


def like(tool: str, **options: Any) -> Convention:
    """Return the estimator and lens that reproduce another tool's number.

    Parameters
    ----------
    tool : str
        One of the names below, each with the tool's own defaults in brackets.
    **options : int or str
        Options of the tool, as in the brackets.

    Returns
    -------
    Convention
        Unpacks as `estimator, lens`.

    Raises
    ------
    InputError
        For an unknown tool or option, and for a convention that cannot be reproduced ("val.prob"), with the reason.

    Notes
    -----
    The tools:

        "torchmetrics" (bins=15, norm="l1"|"l2"|"max", task="multiclass"|"binary"): CalibrationError.
        "netcal" (bins=10, metric="ece"|"mce"|"ace", task="multiclass"|"binary").
        "sklearn" (bins=5, strategy="uniform"|"quantile", norm="l1"|"l2"): calibration_curve, averaged by rows; "l2" as in the
        proposed metric calibration_error (pull request 34261).
        "uncertainty-calibration" (bins=15, metric="ece"|"ece_em"|"l2", mode="top-label"|"marginal"|"binary").
        "relplot" (metric="smece"|"binned", bins=10, task="binary"|"multiclass").
        "guo2017" (bins=15): the code published with temperature scaling.
        "helm" (bins=10): ece_10_bin.
        "robustness-metrics" (bins=15): ExpectedCalibrationError.
        "ace", "tace" (bins=15; threshold=0.01): Nixon et al. 2019.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.95, 1.0, 0.95, 1.0], [1, 0, 1, 1])
    >>> theirs = tc.like("torchmetrics", bins=10, task="binary")
    >>> print(round(theirs.measure(preds).value, 4), round(tc.measure(preds, estimator=tc.BinnedECE(bins=10)).value, 4))
    0.275 0.225
    >>> theirs.differs
    ('a score of exactly 1 has a bin of its own',)
    """
    if tool == "val.prob":
        raise InputError(
            "val.prob (rms, R) averages |lowess curve - score|; R's lowess interpolates between 200 points and is not reproduced "
            "here. tc.clinical.summary(preds) has the measures of the same kind (ICI, E50, E90) with a stated smoother"
        )
    if tool not in _TOOLS:
        raise InputError(f"no convention called {tool!r}; there are {', '.join(sorted([*_TOOLS, 'val.prob']))}")
    try:
        return _TOOLS[tool](**options)
    except TypeError as error:
        raise InputError(
            f"{tool}: {str(error).partition('() ')[2]}; see the list in tc.like's documentation"
        ) from error


def like_for(preds: Predictions, tool: str) -> Convention:
    """Return the convention of a tool for the task of the predictions: binary for one probability per row, where it has tasks.

    >>> like_for(Predictions.from_probs([0.2], [0]), "torchmetrics").lens
    OneClass(name=None)
    """
    if tool == "relplot" and not preds.binary:
        return like(tool, task="multiclass")
    return like(tool, **(_BINARY.get(tool, {}) if preds.binary else {}))


def _torchmetrics(*, bins: int = 15, norm: str = "l1", task: str = "multiclass") -> Convention:
    """Return the convention of torchmetrics' CalibrationError: bins of equal width, with one more for scores of exactly 1.

    "binary" judges OneClass() in double precision, "multiclass" the top label in single, to 1e-6; norms are l1, l2 and max.

    >>> _torchmetrics(task="binary").lens, _torchmetrics().estimator.bins
    (OneClass(name=None), 15)
    """
    options.choice(norm, tuple(_NORMS), "norm")
    options.choice(task, ("multiclass", "binary"), "task")
    if task == "binary":
        estimator = ConventionECE("torch [a, b) and {1}", bins, _NORMS[norm])
        return Convention("torchmetrics", estimator, OneClass(), (_OWN_BIN,))
    estimator = ConventionECE("torch single [a, b) and {1}", bins, _NORMS[norm])
    return Convention("torchmetrics", estimator, TopLabel(), (_OWN_BIN, _SINGLE), 1e-6)


def _netcal(*, bins: int = 10, metric: str = "ece", task: str = "multiclass") -> Convention:
    """Return the convention of netcal's ECE, MCE or ACE: bins by the rule "linspace [a, b)".

    MCE is of norm inf, ACE weighs bins equally; "binary" judges OneClass(), "multiclass" the top label.

    >>> _netcal(metric="mce").estimator.norm, _netcal().estimator.bins
    (inf, 10)
    """
    options.choice(metric, ("ece", "mce", "ace"), "metric")
    options.choice(task, ("multiclass", "binary"), "task")
    average = "bins" if metric == "ace" else "rows"
    estimator = ConventionECE("linspace [a, b)", bins, np.inf if metric == "mce" else 1, average)  # type: ignore[arg-type]
    notes: tuple[str, ...] = (_LINSPACE, "scores are clipped by one unit in the last place")
    if metric == "ace":
        notes = (*notes, "bins of equal width have equal weight, however few their rows")
    return Convention("netcal", estimator, OneClass() if task == "binary" else TopLabel(), notes)


def _sklearn(*, bins: int = 5, strategy: str = "uniform", norm: str = "l1") -> Convention:
    """Return the convention of scikit-learn's calibration_curve, averaged over rows, for OneClass().

    Bins are by the rule "linspace (a, b]" for "uniform", "percentiles (a, b]" for "quantile"; norms are l1 and l2.

    >>> _sklearn(strategy="quantile").estimator.rule, _sklearn().lens
    ('percentiles (a, b]', OneClass(name=None))
    """
    options.choice(strategy, ("uniform", "quantile"), "strategy")
    options.choice(norm, ("l1", "l2"), "norm")
    rule = "linspace (a, b]" if strategy == "uniform" else "percentiles (a, b]"
    notes = (_OPEN_LEFT, _LINSPACE, "calibration_curve returns no counts; this weighs its bins by their rows")
    return Convention("sklearn", ConventionECE(rule, bins, _NORMS[norm]), OneClass(), notes)


def _uncertainty_calibration(*, bins: int = 15, metric: str = "ece", mode: str | None = None) -> Convention:
    """Return the convention of get_ece, get_ece_em or get_calibration_error of uncertainty-calibration.

    >>> _uncertainty_calibration(metric="l2").lens, _uncertainty_calibration(metric="l2").estimator.debias
    (ClassWise(weights=None), True)
    """
    options.choice(metric, ("ece", "ece_em", "l2"), "metric")
    mode = mode or ("marginal" if metric == "l2" else "top-label")
    options.choice(mode, ("top-label", "marginal", "binary"), "mode")
    lens: Lens = {"top-label": TopLabel(), "marginal": ClassWise(), "binary": OneClass()}[mode]
    if metric == "ece":
        return Convention("uncertainty-calibration", ConventionECE("fractions (a, b]", bins), lens, (_OPEN_LEFT,))
    notes: tuple[str, ...] = ("the longer bins come first, and equal scores across a cut go down",)
    if metric == "ece_em":
        return Convention("uncertainty-calibration", ConventionECE("array_split", bins), lens, notes)
    notes = (
        *notes,
        "bins of fewer than two rows count 0",
        "of each class negative squares are set to 0 before averaging",
    )
    return Convention("uncertainty-calibration", ConventionECE("array_split", bins, 2, debias=True), lens, notes)


def _relplot(*, metric: str = "smece", bins: int = 10, task: str = "binary") -> Convention:
    """Return the convention of relplot's smooth or binned ECE: SmoothECE(rule="relplot"), or bins by "floor(c / width)".

    "binary" judges OneClass(), "multiclass" the top label.

    >>> _relplot(task="multiclass").lens, _relplot(metric="binned").estimator.bins
    (TopLabel(), 10)
    """
    options.choice(metric, ("smece", "binned"), "metric")
    options.choice(task, ("binary", "multiclass"), "task")
    lens: Lens = OneClass() if task == "binary" else TopLabel()
    if metric == "binned":
        return Convention(
            "relplot", ConventionECE("floor(c / width)", bins), lens, (_OWN_BIN, "bins are int(c / width)")
        )
    notes = (
        "the bandwidth is halved ten times, so that it is up to 1/1024 above the fixed point and the error up to 0.002 below",
        "residuals are mirrored at 0 and 1 without the ends: scores of exactly 0 or 1 count half",
    )
    return Convention("relplot", SmoothECE(rule="relplot"), lens, notes)


def _guo(*, bins: int = 15) -> Convention:
    """Return the convention of the code of Guo et al. (2017): bins by the rule "torch (a, b]", of the top label, to 1e-6.

    >>> _guo().estimator.rule, _guo().lens
    ('torch (a, b]', TopLabel())
    """
    return Convention("guo2017", ConventionECE("torch (a, b]", bins), TopLabel(), (_OPEN_LEFT, _SINGLE), 1e-6)


def _helm(*, bins: int = 10) -> Convention:
    """Return the convention of HELM's ece_10_bin: bins of equal mass by the rule "array_split", of the top label.

    >>> _helm().estimator.rule, _helm().lens
    ('array_split', TopLabel())
    """
    notes = (
        "ten bins of equal mass, the longer ones first; equal scores across a cut go down",
        "HELM also prints an error after Platt scaling on the same rows, which is not an error on new data",
    )
    return Convention("helm", ConventionECE("array_split", bins), TopLabel(), notes)


def _robustness_metrics(*, bins: int = 15) -> Convention:
    """Return the convention of robustness_metrics' ECE.

    >>> _robustness_metrics().estimator.rule, _robustness_metrics().lens
    ('floor(c * bins)', TopLabel())
    """
    notes = ("bins are floor(c * bins)", _SINGLE)
    return Convention("robustness-metrics", ConventionECE("floor(c * bins)", bins), TopLabel(), notes, 1e-6)


def _ace(*, bins: int = 15) -> Convention:
    """Return the convention of the adaptive calibration error of Nixon et al. (2019): AdaptiveECE(bins), ClassWise().

    >>> _ace().estimator.bins, _ace().lens
    (15, ClassWise(weights=None))
    """
    notes = ("every class is judged, and bins of equal mass have equal weight",)
    return Convention("ace", AdaptiveECE(bins), ClassWise(), notes)


def _tace(*, bins: int = 15, threshold: float = 0.01) -> Convention:
    """Return the convention of the thresholded adaptive calibration error of Nixon et al. (2019).

    It is AdaptiveECE(bins, threshold=threshold), ClassWise().

    >>> _tace().estimator.threshold
    0.01
    """
    notes = ("as ACE, without the probabilities below the threshold, on which its value depends",)
    return Convention("tace", AdaptiveECE(bins, threshold=threshold), ClassWise(), notes)


_TOOLS: dict[str, Callable[..., Convention]] = {
    "ace": _ace,
    "guo2017": _guo,
    "helm": _helm,
    "netcal": _netcal,
    "relplot": _relplot,
    "robustness-metrics": _robustness_metrics,
    "sklearn": _sklearn,
    "tace": _tace,
    "torchmetrics": _torchmetrics,
    "uncertainty-calibration": _uncertainty_calibration,
}
