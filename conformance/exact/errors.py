"""The errors of one probability per row, as p-th powers. Each function is the definition and nothing else."""

from fractions import Fraction

import mpmath

from conformance.exact.bins import Bin, Group, Rows, make_bins
from conformance.exact.numbers import Number, real

INF = float("inf")


def weight(members: Bin) -> Fraction:
    return sum((g.weight for g in members), Fraction(0))


def score(members: Bin) -> Fraction:
    """Mean score of a bin."""
    return sum((g.weight * g.score for g in members), Fraction(0)) / weight(members)


def rate(members: Bin) -> Fraction:
    """Mean outcome of a bin."""
    return sum((g.ones for g in members), Fraction(0)) / weight(members)


def power_mean(terms: list[tuple[Fraction, Fraction]], norm: float) -> Fraction:
    """sum of share * |gap|^p, or the largest |gap| for p = inf; terms are (weight, gap)."""
    if norm == INF:
        return max(abs(gap) for _, gap in terms)
    total = sum((w for w, _ in terms), Fraction(0))
    return sum((w * abs(gap) ** int(norm) for w, gap in terms), Fraction(0)) / total


def binned(rows: Rows, *, bins: int, scheme: str, norm: float, ties: str = "keep", closed: str = "left") -> Fraction:
    """sum_k n_k/n |mean c_k - mean y_k|^p; the maximum over bins for p = inf."""
    bins_of_rows = make_bins(rows, bins, scheme, ties, closed)
    return power_mean([(weight(b), score(b) - rate(b)) for b in bins_of_rows], norm)


def label_binned(
    rows: Rows, *, bins: int, scheme: str, norm: float, ties: str = "keep", closed: str = "left"
) -> Fraction:
    """1/n sum_k sum_{i in k} |c_i - mean y_k|^p."""
    bins_of_rows = make_bins(rows, bins, scheme, ties, closed)
    return power_mean([(g.weight, g.score - rate(b)) for b in bins_of_rows for g in b], norm)


def debiased(
    rows: Rows, *, bins: int, norm: float, scheme: str = "mass", ties: str = "keep", correction: str = "kumar"
) -> Number:
    """sum_k n_k/n [gap_k^2 - variance of the gap], or for norm 1: 2 |gap_k| - E|gap_k + normal noise|.

    At most n/2 bins; a bin of fewer than two rows is left out and the others count in proportion; if none is left, the plug-in.
    """
    used = max(1, min(bins, int(rows.size // 2)))
    bins_of_rows = make_bins(rows, used, scheme, ties)
    usable = [b for b in bins_of_rows if weight(b) * rows.size / rows.total >= 2]
    if not usable:
        return power_mean([(weight(b), score(b) - rate(b)) for b in bins_of_rows], norm)
    terms = [(weight(b), _debiased_gap(b, weight(b) * rows.size / rows.total, norm, correction)) for b in usable]
    total = sum((w for w, _ in terms), Fraction(0))
    if norm == 1:
        return sum((real(w / total) * real(t) for w, t in terms), mpmath.mpf(0))
    return sum((w * t for w, t in terms), Fraction(0)) / total


def _debiased_gap(members: Bin, n: Fraction, norm: float, correction: str) -> Number:
    gap, y = score(members) - rate(members), rate(members)
    if norm == 2 and correction == "kumar":
        return gap**2 - y * (1 - y) / (n - 1)
    if norm == 2:  # the sample variance of y - c over n; y * y is y
        square = sum((g.ones * (1 - 2 * g.score) + g.weight * g.score**2 for g in members), Fraction(0)) / weight(
            members
        )
        return gap**2 - (square - gap**2) / (n - 1)
    variance = real(y * (1 - y) / n)
    if variance == 0:
        return abs(gap)
    z = real(abs(gap)) / mpmath.sqrt(variance)
    folded = mpmath.sqrt(2 * variance / mpmath.pi) * mpmath.exp(-(z**2) / 2) + real(abs(gap)) * mpmath.erf(
        z / mpmath.sqrt(2)
    )
    return 2 * real(abs(gap)) - folded


def sweep(rows: Rows, *, norm: float, scheme: str = "mass", ties: str = "keep") -> Fraction:
    """The binned error with the largest b before the bin means of y first fall; at most n bins (rows, or the sum of counts)."""
    best = 1
    max_bins = int(rows.total) if rows.counted else len(rows.scores)
    for b in range(2, max_bins + 1):
        rates = [rate(members) for members in make_bins(rows, b, scheme, ties)]
        if rates != sorted(rates):
            break
        best = b
    return binned(rows, bins=best, scheme=scheme, norm=norm, ties=ties)


def nearest(rows: Rows, *, neighbors: int, norm: float) -> Fraction:
    """1/n sum_i |mean c - mean y over the k scores nearest to c_i, itself included|^p.

    Of two scores equally far the lower is nearer; a group that is only partly among the k counts with the mean of its outcomes.
    """
    groups = rows.groups
    k = min(Fraction(neighbors), rows.total)
    terms = []
    for center in groups:
        neighbours: list[Group] = []
        missing = k
        for group in sorted(groups, key=lambda g: (abs(g.score - center.score), g.score)):
            count = min(missing, group.weight)
            if count > 0:
                neighbours.append(group.part(count / group.weight))
            missing -= count
        terms.append((center.weight, score(neighbours) - rate(neighbours)))
    return power_mean(terms, norm)


def isotonic(rows: Rows) -> Fraction:
    """Brier score minus the Brier score of the isotonic regression of outcomes on scores (pool adjacent violators)."""
    blocks: list[Bin] = []
    for group in rows.groups:
        blocks.append([group])
        while len(blocks) > 1 and rate(blocks[-2]) >= rate(blocks[-1]):
            last = blocks.pop()
            blocks[-1] = blocks[-1] + last
    brier = sum((_brier(g, g.score) for g in rows.groups), Fraction(0))
    fitted = sum((_brier(g, rate(block)) for block in blocks for g in block), Fraction(0))
    return (brier - fitted) / rows.total


def _brier(group: Group, forecast: Fraction) -> Fraction:
    return group.ones * (1 - forecast) ** 2 + (group.weight - group.ones) * forecast**2
