"""The smooth calibration error (Blasiok and Nakkiran 2023) to 18 digits."""

import itertools
import math
from collections.abc import Callable

import mpmath

from conformance.exact.bins import Rows
from conformance.exact.numbers import real

_IMAGES = 6  # reflections on either side; the kernel is below 1e-25 beyond them for the widths that occur


def smooth(rows: Rows) -> mpmath.mpf:
    """sigma with sigma = int_0^1 |1/n sum_i (y_i - c_i) K_sigma(t, c_i)| dt, K the Gaussian reflected at 0 and 1."""
    total = real(rows.total)
    residuals = [(real(g.score), (real(g.ones) - real(g.weight * g.score)) / total) for g in rows.groups]
    if all(r == 0 for _, r in residuals):
        return mpmath.mpf(0)
    with mpmath.workdps(25):
        # The integral falls as sigma grows, so its excess over sigma has one zero; findroot squares the excess.
        bounds = (mpmath.mpf("1e-3"), 1)
        bandwidth = mpmath.findroot(lambda s: _smoothed(residuals, s) - s, bounds, solver="anderson", tol=1e-40)
        digits = mpmath.nstr(bandwidth, 18)
    return mpmath.mpf(digits)


def _smoothed(residuals: list[tuple[mpmath.mpf, mpmath.mpf]], sigma: mpmath.mpf) -> mpmath.mpf:
    """The integral, between changes of sign, through the antiderivative of the Gaussian."""
    centres = [
        (2 * image + sign * c, r)
        for c, r in residuals
        for image in range(-_IMAGES, _IMAGES + 1)
        for sign in (1, -1)
        if -1 - 12 * sigma < 2 * image + sign * c < 2 + 12 * sigma
    ]

    # Where the sign changes may be found in double precision: the area is flat there, so an error of 1e-15 is one of 1e-30 in it.
    width, rounded = float(sigma), [(float(c), float(r)) for c, r in centres]

    def density(t: float) -> float:
        return math.fsum(r * math.exp(-(((t - c) / width) ** 2) / 2) for c, r in rounded)

    def area(t: mpmath.mpf) -> mpmath.mpf:
        return sum(r * mpmath.erf((t - c) / (sigma * mpmath.sqrt(2))) for c, r in centres) / 2

    grid = sorted({i / 200 for i in range(201)} | {float(c) for c, _ in residuals})
    values = [density(t) for t in grid]
    turns = [mpmath.mpf(0)]
    for left, right, a, b in zip(grid, grid[1:], values, values[1:], strict=False):
        if a == 0:  # a turn more than there is changes nothing
            turns.append(mpmath.mpf(left))
        if a * b < 0:
            turns.append(mpmath.mpf(_root(density, left, right, a)))
    turns.append(mpmath.mpf(1))
    return sum(abs(area(b) - area(a)) for a, b in itertools.pairwise(turns))


def _root(f: Callable[[float], float], left: float, right: float, at_left: float) -> float:
    for _ in range(45):
        middle = (left + right) / 2
        left, right = (middle, right) if f(middle) * at_left > 0 else (left, middle)
    return (left + right) / 2
