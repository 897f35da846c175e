"""What is judged: rows of one probability from predictions over several classes, and errors of several probabilities at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import mpmath

from conformance.exact.bins import Rows
from conformance.exact.errors import INF
from conformance.exact.numbers import Number, real, rounded

Vector = tuple[Fraction, ...]


@dataclass(frozen=True)
class Predictions:
    """Probabilities over classes, or P(class 1) alone (`binary`), with labels and weights."""

    probs: Sequence[Vector]
    labels: Sequence[int]
    weights: Sequence[Fraction] | None = None
    precision: str = "float64"
    binary: bool = False

    @property
    def classes(self) -> int:
        return len(self.probs[0])


def binary(
    scores: Sequence[Fraction], labels: Sequence[int], weights: Sequence[Fraction] | None, precision: str
) -> Predictions:
    """P(class 1) alone: the other probability is 1 - p, rounded to the precision of the scores."""
    return Predictions([(rounded(1 - p, precision), p) for p in scores], labels, weights, precision, binary=True)


def _rows(preds: Predictions, scores: list[Fraction], outcomes: list[int]) -> Rows:
    return Rows(scores, outcomes, preds.weights, preds.precision)


def predicted(preds: Predictions, probs: Vector) -> int:
    """The class of the largest probability; of equals the first, but at P(class 1) = 1/2 alone class 1."""
    order = range(preds.classes - 1, -1, -1) if preds.binary else range(preds.classes)
    return max(order, key=lambda k: probs[k])


def top_label(preds: Predictions) -> Rows:
    """Score: the largest probability. Outcome: whether that class was the label."""
    tops = [predicted(preds, p) for p in preds.probs]
    return _rows(
        preds,
        [p[t] for p, t in zip(preds.probs, tops, strict=True)],
        [int(t == y) for t, y in zip(tops, preds.labels, strict=True)],
    )


def one_class(preds: Predictions, k: int) -> Rows:
    """Score: the probability of class k. Outcome: whether it was the label."""
    return _rows(preds, [p[k] for p in preds.probs], [int(y == k) for y in preds.labels])


def all_labels(preds: Predictions) -> Rows:
    """Every probability of every row, pooled."""
    weights = None if preds.weights is None else [w for w in preds.weights for _ in range(preds.classes)]
    scores = [p for row in preds.probs for p in row]
    outcomes = [int(k == y) for y in preds.labels for k in range(preds.classes)]
    return Rows(scores, outcomes, weights, preds.precision)


def class_wise(preds: Predictions, error: Callable[[Rows], Number]) -> Number:
    """The mean over classes of the p-th powers; classes that never occur as a label count like the others."""
    powers = [error(one_class(preds, k)) for k in range(preds.classes)]
    if all(isinstance(p, Fraction) for p in powers):
        return sum(powers, Fraction(0)) / preds.classes
    return sum((real(p) for p in powers), mpmath.mpf(0)) / preds.classes


def top_k(preds: Predictions, k: int) -> tuple[list[Vector], list[int]]:
    """The k largest probabilities in falling order and the rest; the event is the rank of the label, or k."""
    vectors, events = [], []
    for p, y in zip(preds.probs, preds.labels, strict=True):
        classes = range(preds.classes - 1, -1, -1) if preds.binary else range(preds.classes)
        order = sorted(classes, key=lambda c: -p[c])  # stable: of equals the first
        vectors.append((*(p[c] for c in order[:k]), 1 - sum(p[c] for c in order[:k])))
        events.append(min(order.index(y), k))
    return vectors, events


def grouping(preds: Predictions, groups: Sequence[Sequence[int]]) -> tuple[list[Vector], list[int]]:
    """The probability of a group is the sum over its classes; the event is the group of the label."""
    vectors = [tuple(sum((p[c] for c in g), Fraction(0)) for g in groups) for p in preds.probs]
    return vectors, [next(i for i, g in enumerate(groups) if y in g) for y in preds.labels]


def canonical(preds: Predictions) -> tuple[list[Vector], list[int]]:
    """All classes at once."""
    return list(preds.probs), list(preds.labels)


def tree_bins(vectors: list[Vector], fraction: Fraction) -> list[list[int]]:
    """Split nodes of at least round(fraction n) rows at the mean of the coordinate of highest variance (the first of equals)."""
    min_rows = round(fraction * len(vectors))
    done, waiting = [], [list(range(len(vectors)))]
    while waiting:
        node = waiting.pop()
        low = _below_the_mean([vectors[i] for i in node]) if len(node) >= max(min_rows, 2) else []
        lower = [node[i] for i in low]
        if 0 < len(lower) < len(node):
            waiting += [lower, [i for i in node if i not in lower]]
        else:
            done.append(node)
    return done


def _below_the_mean(vectors: list[Vector]) -> list[int]:
    columns = list(zip(*vectors, strict=True))
    means = [sum(column, Fraction(0)) / len(column) for column in columns]
    spreads = [sum((x - m) ** 2 for x in column) for column, m in zip(columns, means, strict=True)]
    widest = spreads.index(max(spreads))
    return [i for i, x in enumerate(columns[widest]) if x < means[widest]]


def grid_bins(vectors: list[Vector], bins: int) -> list[list[int]]:
    """Cells of a grid of [j/b, (j+1)/b) along every probability, the last interval closed."""
    cells: dict[tuple[int, ...], list[int]] = {}
    for i, vector in enumerate(vectors):
        key = tuple(min(int(x * bins), bins - 1) for x in vector)
        cells.setdefault(key, []).append(i)
    return list(cells.values())


def generalized(vectors: list[Vector], events: list[int], bins: list[list[int]], norm: float) -> Fraction:
    """sum_B |B|/n d(mean output, mean outcome)^p with the total variation distance 1/2 sum |difference|."""
    terms = []
    for members in bins:
        n, d = len(members), len(vectors[0])
        output = [sum(vectors[i][j] for i in members) / n for j in range(d)]
        outcome = [Fraction(sum(events[i] == j for i in members), n) for j in range(d)]
        distance = sum(abs(g - y) for g, y in zip(output, outcome, strict=True)) / 2
        terms.append((Fraction(n, len(vectors)), distance))
    if norm == INF:
        return max(distance for _, distance in terms)
    return sum((share * distance ** int(norm) for share, distance in terms), Fraction(0))


def softmax(logits: Sequence[Fraction]) -> tuple[mpmath.mpf, ...]:
    """exp(z_k) / sum exp(z), in 50 digits."""
    powers = [mpmath.exp(real(z) - real(max(logits))) for z in logits]
    return tuple(p / sum(powers) for p in powers)


def temperature(logits: Sequence[Sequence[Fraction]], labels: Sequence[int]) -> mpmath.mpf:
    """T that maximises sum log softmax(z / T)_label; the derivative in 1/T falls, so bisection finds its zero."""

    def slope(beta: mpmath.mpf) -> mpmath.mpf:
        total = mpmath.mpf(0)
        for z, y in zip(logits, labels, strict=True):
            powers = [mpmath.exp(beta * real(v - max(z))) for v in z]
            total += real(z[y]) - sum(p * real(v) for p, v in zip(powers, z, strict=True)) / sum(powers)
        return total

    low, high = mpmath.mpf(0), mpmath.mpf(1)
    while slope(high) > 0:
        high *= 2
    for _ in range(180):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return 2 / (low + high)
