"""The inputs of the cases: small, and chosen where implementations part ways."""

import random
from fractions import Fraction
from typing import Any

from conformance.exact.numbers import BITS, rounded

Dataset = dict[str, Any]


def scores(
    about: str, values: list[float], outcomes: list[int], weights: list[float] | None = None, precision: str = "float64"
) -> Dataset:
    """One probability per row; values are rounded to the precision first."""
    exact = [float(rounded(Fraction(v), precision)) for v in values]
    data = {"kind": "scores", "about": about, "precision": precision, "scores": exact, "outcomes": outcomes}
    return data if weights is None else {**data, "weights": weights}


def probs(about: str, rows: list[list[float]], labels: list[int], weights: list[float] | None = None) -> Dataset:
    """Probabilities over classes."""
    data = {"kind": "probs", "about": about, "precision": "float64", "probs": rows, "labels": labels}
    return data if weights is None else {**data, "weights": weights}


def logits(about: str, rows: list[list[float]], labels: list[int]) -> Dataset:
    """Logits over classes: probabilities are their softmax."""
    return {"kind": "logits", "about": about, "precision": "float64", "logits": rows, "labels": labels}


TENTHS = [i / 10 for i in range(11)]
_draw = random.Random(2026)
_fine = [_draw.randrange(1025) / 1024 for _ in range(40)]
_coarse = [_draw.randrange(11) / 10 for _ in range(40)]
_skewed = [float(rounded(Fraction(1 - _draw.random() ** 6 / 3), "float64")) for _ in range(32)]
FIFTEENTHS = [j / 15 for j in range(16)]


def _outcomes(values: list[float]) -> list[int]:
    return [int(_draw.random() < v**1.5) for v in values]


def _simplex(rows: int, classes: int) -> list[list[float]]:
    """Rows of multiples of 1/64 that sum to 1 exactly."""
    result = []
    for _ in range(rows):
        cuts = sorted(_draw.randrange(65) for _ in range(classes - 1))
        result.append([(b - a) / 64 for a, b in zip([0, *cuts], [*cuts, 64], strict=True)])
    return result


SCORES: dict[str, Dataset] = {
    "plain": scores(
        "distinct scores, none on an edge", [0.03, 0.17, 0.26, 0.44, 0.52, 0.68, 0.79, 0.93], [0, 0, 1, 0, 1, 1, 0, 1]
    ),
    "ties": scores(
        "long runs of equal scores", [0.25] * 5 + [0.5] * 4 + [0.75] * 6, [0, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1]
    ),
    "shuffled ties": scores(
        "the rows of `ties` in another order: the same answers",
        [0.75, 0.25, 0.5] * 4 + [0.75, 0.75, 0.25],
        [1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0],
    ),
    "all tied": scores("one distinct score", [0.6] * 7, [1, 0, 1, 1, 0, 1, 0]),
    "zeros and ones": scores(
        "exact 0 and 1 with misses", [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.5], [0, 1, 0, 1, 1, 0, 1, 1]
    ),
    "ones only": scores("every score is 1: no hidden bin for it", [1.0] * 5, [1, 1, 0, 1, 1]),
    **{
        f"tenths {p}": scores("scores on the edges of ten bins", TENTHS, [0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1], precision=p)
        for p in BITS
    },
    **{
        f"fifteenths {p}": scores(
            "scores on the edges of fifteen bins",
            FIFTEENTHS,
            [0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1],
            precision=p,
        )
        for p in BITS
    },
    "hundredths": scores(
        "scores that floor(100 c) puts one bin too low",
        [0.07, 0.14, 0.28, 0.29, 0.55, 0.56, 0.57, 0.58],
        [0, 0, 1, 0, 1, 0, 1, 1],
    ),
    "empty bins": scores(
        "all scores at the upper end", [0.82, 0.86, 0.91, 0.92, 0.97, 0.98, 0.99], [1, 0, 1, 1, 1, 1, 0]
    ),
    "counts": scores(
        "whole-number weights are repetitions", [0.15, 0.35, 0.35, 0.6, 0.85], [0, 1, 0, 1, 1], [3, 1, 2, 4, 5]
    ),
    "repeated": scores(
        "the rows of `counts` written out: the same answers",
        [0.15] * 3 + [0.35] * 3 + [0.6] * 4 + [0.85] * 5,
        [0] * 3 + [1, 0, 0] + [1] * 9,
    ),
    "importance": scores(
        "other weights: only ratios matter",
        [0.15, 0.35, 0.35, 0.6, 0.85, 0.9],
        [0, 1, 0, 1, 1, 0],
        [0.5, 1.25, 2.0, 0.75, 3.5, 1.0],
    ),
    "weight zero": scores("a row of weight 0 is absent", [0.2, 0.4, 0.6, 0.8], [0, 1, 1, 0], [1, 0, 2, 1]),
    "one row": scores("a single prediction", [0.7], [1]),
    "two rows": scores("two predictions of one score", [0.3, 0.3], [0, 1]),
    "all right": scores("every outcome is 1", [0.55, 0.65, 0.75, 0.85, 0.95], [1] * 5),
    "all wrong": scores("every outcome is 0", [0.55, 0.65, 0.75, 0.85, 0.95], [0] * 5),
    "calibrated": scores(
        "rates equal the scores: every binned error is 0",
        [0.25] * 4 + [0.5] * 4 + [0.75] * 4,
        [0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1],
    ),
    "reversed": scores("outcomes fall as scores rise", [0.1, 0.2, 0.4, 0.6, 0.8, 0.9], [1, 1, 1, 0, 0, 0]),
    "neighbours": scores(
        "adjacent floats are different scores", [0.5, 0.5 + 2**-53, 0.5 + 2**-52, 0.5 - 2**-54], [0, 1, 1, 0]
    ),
    "fine": scores("forty multiples of 1/1024", _fine, _outcomes(_fine)),
    "coarse": scores("forty answers in tenths, as people give them", _coarse, _outcomes(_coarse)),
    "skewed": scores("scores piled up near 1", _skewed, _outcomes(_skewed)),
}

_four = _simplex(24, 4)
PROBS: dict[str, Dataset] = {
    "three classes": probs(
        "three classes",
        [
            [0.5, 0.25, 0.25],
            [0.125, 0.75, 0.125],
            [0.25, 0.125, 0.625],
            [0.875, 0.125, 0.0],
            [0.375, 0.5, 0.125],
            [0.0625, 0.3125, 0.625],
        ],
        [0, 1, 2, 0, 0, 1],
    ),
    "class never seen": probs(
        "class 2 has probabilities but is never the label: it still counts",
        [[0.5, 0.25, 0.25], [0.125, 0.5, 0.375], [0.75, 0.125, 0.125], [0.25, 0.25, 0.5]],
        [0, 1, 0, 1],
    ),
    "tied tops": probs(
        "equal largest probabilities: the first class is predicted",
        [[0.5, 0.5, 0.0], [0.25, 0.375, 0.375], [0.375, 0.25, 0.375], [0.0, 0.5, 0.5]],
        [1, 2, 0, 1],
    ),
    "two columns": probs(
        "two classes in two columns; at 1/2 the first is predicted",
        [[0.5, 0.5], [0.25, 0.75], [0.875, 0.125], [0.5, 0.5], [0.375, 0.625]],
        [0, 1, 1, 1, 0],
    ),
    "four classes": probs("random rows, multiples of 1/64", _four, [_draw.choices(range(4), row)[0] for row in _four]),
    "one row of classes": probs("a single prediction", [[0.25, 0.5, 0.25]], [2]),
    "weighted classes": probs(
        "whole-number weights", [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.125, 0.625]], [0, 2, 2], [2, 1, 3]
    ),
}

LOGITS: dict[str, Dataset] = {
    "saturated": logits(
        "differences of thousands: no overflow, no NaN",
        [[1000.0, 0.0, -1000.0], [-2000.0, 2000.0, 0.0], [3.0, 1000.0, 999.0], [0.0, 0.0, 0.0]],
        [0, 0, 2, 1],
    ),
    "ordinary": logits(
        "logits as networks give them",
        [[2.5, 0.3, -1.0], [0.1, 1.7, 0.2], [-0.4, 0.0, 3.1], [1.2, 1.1, 0.0], [4.0, -2.0, 1.0], [0.3, 2.2, 2.1]],
        [0, 1, 2, 1, 2, 1],
    ),
    "shifted": logits(
        "the rows of `ordinary` plus 500: the same answers",
        [
            [502.5, 500.3, 499.0],
            [500.125, 501.75, 500.25],
            [499.5, 500.0, 503.125],
            [501.25, 501.125, 500.0],
            [504.0, 498.0, 501.0],
            [500.25, 502.25, 502.125],
        ],
        [0, 1, 2, 1, 2, 1],
    ),
}
DATASETS = {**SCORES, **PROBS, **LOGITS}
