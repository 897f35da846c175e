"""`tc.groups.beyond_top`: what recalibration does to the classes below the most probable one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.estimators.generalized import binning
from truecal.estimators.generalized.binning import EqualWidth, KDTree
from truecal.lenses.lens import Sample
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Floats

_BLOCK = 1 << 18  # derived: probabilities whose logarithms are computed at a time: 2 MiB


@dataclass(frozen=True, eq=False, repr=False)
class BeyondTop(Tabular):
    """Errors, accuracies and confidences of methods at the top class, at the top k, and over all classes.

    Attributes
    ----------
    by_k : Frame
        One row per `method` and `k`: the top-k calibration `error` with `low` and `high` (Figure 1 of the paper);
        `accuracy`, how often the label is among the k most probable classes (Figure 10); `confidence`, the mean probability
        of the k-th most probable class; its `difference` from and `ratio` to the baseline's (Figure 2).
    by_method : Frame
        One row per `method`: the `traditional` error (top label, 15 bins of equal width) and the `full` error (all classes
        together), each with `_low` and `_high`; the mean `entropy` in nats (Figure 11); `accuracy`.
    baseline : str
        The method compared with.

    See Also
    --------
    truecal.groups.beyond_top : The function that returns it.
    """

    by_k: Frame
    by_method: Frame
    baseline: str

    def frame(self) -> Frame:
        """Return one row per method and k: method, k, error, low, high, accuracy, confidence, difference, ratio."""
        return self.by_k

    def __str__(self) -> str:
        """Write the number of methods, the name of the baseline, and the table `by_k`."""
        return f"{len(self.by_method)} methods beside {self.baseline!r}, by the number of most probable classes\n{self.by_k}"


def beyond_top(
    methods: Mapping[str, tc.Predictions],
    *,
    ks: Sequence[int] = (1, 2, 3, 5, 10),
    baseline: str | None = None,
    binning: binning.KDTree | binning.EqualWidth | binning.EqualMass | None = None,
    level: float = 0.95,
    replicates: int = 200,
    rng: int = 0,
) -> BeyondTop:
    """Compare methods at the top class, at the top k, and over all classes.

    Parameters
    ----------
    methods : mapping of str to Predictions
        Predictions of the same rows with the same labels, by the name of the method.
    ks : sequence of int, default (1, 2, 3, 5, 10)
        How many of the most probable classes to judge together.
    baseline : str, default None
        The method compared with; None is the first.
    binning : KDTree, EqualWidth or EqualMass, default None
        Bins of the top-k and full errors; None is KDTree(0.1).
    level : float, default 0.95
        Level of the intervals.
    replicates : int, default 200
        Resamples behind the intervals.
    rng : int, default 0
        Seed of the resamples.

    Returns
    -------
    BeyondTop
        A table by method and k, and one by method.

    Raises
    ------
    InputError
        Methods with different labels or classes, or a k above the number of classes.

    Notes
    -----
    Most recalibration methods repair the confidence of the predicted class by moving probability to others. These tables
    show where it went.

    References
    ----------
    Kirchenbauer, Oaks, Heim. What is your metric telling you? Evaluating classifier calibration under context-specific
    definitions of reliability. 2022. https://doi.org/10.48550/arXiv.2205.11454

    See Also
    --------
    truecal.TopK : The lens of the k most probable classes.
    truecal.evaluate : Compare recalibration methods by proper scores.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(scale=3, size=(2000, 6))
    >>> labels = (rng.random((2000, 1)) > tc.Predictions.from_logits(logits / 3, np.zeros(2000, int)).probs.cumsum(1)).sum(1)
    >>> table = tc.groups.beyond_top({
    ...     "raw": tc.Predictions.from_logits(logits, labels),
    ...     "T = 3": tc.Predictions.from_logits(logits / 3, labels),
    ... }, ks=[1, 2])
    >>> [f"{name} {k} {value:+.2f}" for name, k, value in zip(*(table.by_k[c] for c in ("method", "k", "difference")))]
    ['raw 1 +0.00', 'raw 2 +0.00', 'T = 3 1 -0.30', 'T = 3 2 +0.05']
    """
    first = _check_methods(methods, baseline)
    ranks = _check_ks(ks, min(preds.class_count for preds in methods.values()))
    full = tc.GeneralizedECE(
        binning=KDTree() if binning is None else binning, level=level, replicates=replicates, rng=rng
    )
    traditional = replace(full, lens=tc.TopLabel(), binning=EqualWidth(15))
    by_k: list[dict[str, Any]] = []
    by_method: list[dict[str, Any]] = []
    baseline_confidence = _rank_confidence(methods[first], ranks[-1])
    for name, method in methods.items():
        preds, _ = full.chosen(method, None)  # without rows of weight zero
        top = tc.TopK(ranks[-1]).sample(preds)
        confidence = np.average(top.probs, axis=0, weights=preds.weights)

        def accuracy(k: int, top: Sample = top, weights: Float64s | None = preds.weights) -> float:
            """Compute the weighted share of rows whose label is among the k most probable classes (its rank in `top` is below
            k).
            """
            return float(np.average(top.labels < k, weights=weights))

        for k in ranks:
            mean, reference = float(confidence[k - 1]), float(baseline_confidence[k - 1])
            ratio = mean / reference if reference > 0 else float("nan")
            errors = _limits(full(first_ranks(top, k)), ("error", "low", "high"))
            numbers = {"accuracy": accuracy(k), "confidence": mean, "difference": mean - reference, "ratio": ratio}
            by_k.append({"method": name, "k": k, **errors, **numbers})
        errors = _limits(traditional(preds), ("traditional", "traditional_low", "traditional_high"))
        errors |= _limits(full(preds), ("full", "full_low", "full_high"))
        mean_entropy = float(np.average(entropy(preds), weights=preds.weights))
        by_method.append({"method": name, **errors, "entropy": mean_entropy, "accuracy": accuracy(1)})
    return BeyondTop(Frame.from_records(by_k), Frame.from_records(by_method), first)


def first_ranks(top: Sample, k: int) -> Sample:
    """Return the sample of the k most probable classes from a top-K sample, K >= k.

    Probabilities are its first k columns; labels are ranks from 0, and k stands for all other classes.

    >>> preds = tc.Predictions.from_probs([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]], [0, 0])
    >>> sample = first_ranks(tc.TopK(2).sample(preds), 1)
    >>> sample.probs, sample.labels
    (array([[0.5],
           [0.5]]), array([0, 1]))
    """
    names, outcomes = (*top.names[:k], top.names[-1]), np.minimum(top.labels, k)
    return replace(top, scores=top.probs[:, :k], outcomes=outcomes, names=names, implied=k, event=0)


def _limits(estimate: tc.Estimate, names: tuple[str, str, str]) -> dict[str, float]:
    """Return value, lower and upper limit of an estimate with an interval, under three `names`.

    >>> estimate = tc.measure(tc.Predictions.from_probs([0.2, 0.8] * 50, [0, 1] * 50))
    >>> list(_limits(estimate, ("error", "low", "high")))
    ['error', 'low', 'high']
    """
    assert estimate.interval is not None
    values = (estimate.value, estimate.interval.low, estimate.interval.high)
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def entropy(preds: tc.Predictions) -> Float64s:
    """Compute -sum_k p_k ln p_k of every row, in nats; 0 ln 0 is 0.

    >>> import truecal as tc
    >>> entropy(tc.Predictions.from_probs([0.5, 1.0], [1, 1]))
    array([0.69314718, 0.        ])
    """
    from scipy.special import entr

    if preds.binary:
        p = preds.probs.astype(np.float64)
        return np.asarray(entr(p) + entr(1 - p))
    entropies = np.empty(len(preds))
    step = max(1, _BLOCK // preds.class_count)
    for start in range(0, len(preds), step):
        entropies[start : start + step] = entr(preds.probs[start : start + step].astype(np.float64)).sum(axis=1)
    return entropies


def _rank_confidence(preds: tc.Predictions, k: int) -> Floats:
    """Compute the weighted mean probability of the i-th most probable class, i = 1..k, shape (k,).

    >>> _rank_confidence(tc.Predictions.from_probs([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], [0, 2]), 2)
    array([0.6 , 0.25])
    """
    return np.average(tc.TopK(k).sample(preds).probs, axis=0, weights=preds.weights)


def _check_ks(ks: Sequence[int], classes: int) -> list[int]:
    """Return the distinct k, ascending; refuse none, and those that are no whole numbers from 1 to the number of classes.

    >>> _check_ks([5, 1, 5], 10)
    [1, 5]
    """
    if not hasattr(ks, "__len__") or len(ks) == 0:
        raise InputError(f"give a list with at least one k, such as ks=[1, 5], not {ks!r}")
    for k in ks:
        tc.TopK(k)  # refuses what is not a whole number of at least 1
        if k > classes:
            raise InputError(f"k is {k}, but there are only {classes} classes; use a smaller k")
    return sorted({int(k) for k in ks})


def _check_methods(methods: Mapping[str, tc.Predictions], baseline: str | None) -> str:
    """Return the name of the baseline (None: the first method).

    Refuses an empty mapping, an unknown baseline, and methods of other labels or another number of classes.

    >>> preds = tc.Predictions.from_probs([0.2, 0.8], [0, 1])
    >>> _check_methods({"raw": preds, "scaled": preds}, None)
    'raw'
    """
    if not isinstance(methods, Mapping) or not methods:
        raise InputError("methods must be a mapping such as {'raw': predictions, 'temperature': predictions}")
    first = next(iter(methods)) if baseline is None else baseline
    if first not in methods:
        raise InputError(f"there is no method {first!r} to compare with; the methods are {', '.join(methods)}")
    labels = methods[first].labels
    for name, preds in methods.items():
        if len(preds) != len(labels) or not np.array_equal(preds.labels, labels):
            raise InputError(f"methods {first!r} and {name!r} have different labels; predict the same rows with both")
        if preds.class_count != methods[first].class_count:
            raise InputError(f"methods {first!r} and {name!r} have different numbers of classes")
    return first
