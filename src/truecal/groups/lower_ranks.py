"""What a recalibration did beyond the top class.

Most methods repair the confidence of the predicted class by moving probability elsewhere. These tables show where it went, for any
set of methods applied to the same rows: one `Predictions` per method, as a mapping from its name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.estimators.generalized import binning
from truecal.estimators.generalized.binning import EqualWidth, KDTree
from truecal.lenses.lens import Sample
from truecal.table import Frame
from truecal.types import Float64s, Floats

_BLOCK = 1 << 18  # probabilities whose logarithms are held at a time
_BY_K = ("method", "k", "error", "low", "high", "accuracy", "confidence", "difference", "ratio")
_ERRORS = tuple(f"{kind}{end}" for kind in ("traditional", "full") for end in ("", "_low", "_high"))
_BY_METHOD = ("method", *_ERRORS, "entropy", "accuracy")


@dataclass(frozen=True, eq=False)
class BeyondTop:
    """Tables over methods: `by_k` (one row per method and k), `by_method` (one row per method), as columns.

    by_k holds
        method, k,
        error, low, high : top-k calibration error with its interval (Figure 1 of Kirchenbauer, Oaks & Heim 2022),
        accuracy : how often the label is among the k most probable classes (Figure 10),
        confidence : mean probability of the k-th most probable class,
        difference, ratio : that confidence minus, and divided by, the baseline's (Figure 2).
    by_method holds
        method, traditional (top label, 15 bins of equal width), traditional_low, traditional_high,
        full (all classes together), full_low, full_high, entropy (mean, in nats; Figure 11), accuracy.
    """

    by_k: Frame
    by_method: Frame
    baseline: str

    def frame(self) -> Frame:
        """The table by method and k."""
        return self.by_k


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
    methods : name -> Predictions on the same rows with the same labels.
    baseline : the method compared with; by default the first.
    ks : how many classes to judge together; those above the number of classes are refused.
    binning : of the top-k and full errors; default KDTree(0.1).

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
    first = _checked(methods, baseline)
    ranks = _asked(ks, min(preds.class_count for preds in methods.values()))
    full = tc.GeneralizedECE(
        binning=KDTree() if binning is None else binning, level=level, replicates=replicates, rng=rng
    )
    traditional = replace(full, lens=tc.TopLabel(), binning=EqualWidth(15))
    reference = _rank_confidence(methods[first], ranks[-1])
    by_k, by_method = [], []
    for name, method in methods.items():
        # Rows of weight zero are absent.
        preds, _ = full.chosen(method, None)
        top = tc.TopK(ranks[-1]).sample(preds)
        confidence = np.average(top.probs, axis=0, weights=preds.weights)
        for k in ranks:
            mean_confidence, other = float(confidence[k - 1]), float(reference[k - 1])
            accuracy = float(np.average(top.labels < k, weights=preds.weights))
            ratio = mean_confidence / other if other > 0 else float("nan")
            error = _three_numbers(full(first_ranks(top, k)))
            by_k.append((name, k, *error, accuracy, mean_confidence, mean_confidence - other, ratio))
        mean_entropy = float(np.average(entropy(preds), weights=preds.weights))
        accuracy = float(np.average(top.labels < 1, weights=preds.weights))
        errors = (*_three_numbers(traditional(preds)), *_three_numbers(full(preds)))
        by_method.append((name, *errors, mean_entropy, accuracy))
    return BeyondTop(_columns(_BY_K, by_k), _columns(_BY_METHOD, by_method), first)


def first_ranks(top: Sample, k: int) -> Sample:
    """Take the first k columns of a top-k sample and the rest: the sample of a smaller k without another pass over the data."""
    names, outcomes = (*top.names[:k], top.names[-1]), np.minimum(top.labels, k)
    return replace(top, scores=top.probs[:, :k], outcomes=outcomes, names=names, implied=k, event=0)


def _three_numbers(estimate: tc.Estimate) -> tuple[float, float, float]:
    """The error and the ends of its interval."""
    assert estimate.interval is not None
    return float(estimate.value), float(estimate.interval.low), float(estimate.interval.high)


def _columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Frame:
    return Frame({name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)})


def entropy(preds: tc.Predictions) -> Float64s:
    """-sum_k p_k ln p_k of every row, in nats; 0 ln 0 is 0.

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
    """Mean probability of the i-th most probable class, i = 1..k."""
    return np.average(tc.TopK(k).sample(preds).probs, axis=0, weights=preds.weights)


def _asked(ks: Sequence[int], classes: int) -> list[int]:
    if not hasattr(ks, "__len__") or len(ks) == 0:
        raise InputError(f"give a list with at least one k, such as ks=[1, 5], not {ks!r}")
    for k in ks:
        tc.TopK(k)  # refuses what is not a whole number of at least 1
        if k > classes:
            raise InputError(f"k is {k}, but there are only {classes} classes; use a smaller k")
    return sorted({int(k) for k in ks})


def _checked(methods: Mapping[str, tc.Predictions], baseline: str | None) -> str:
    """The baseline's name; refuses methods that do not judge the same rows."""
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
