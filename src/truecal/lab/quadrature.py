"""Expectations over a score distribution by adaptive Gauss-Legendre quadrature.

A continuous distribution hands over its pieces, each in a coordinate in which its mass is smooth (a Beta(2.8, 0.05) is
hopeless in c and nearly flat in (1-c)^0.05). The integrand gets c and 1-c separately, because 1-c is often far below
the spacing of floating-point numbers near 1.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integrand = Callable[[Array, Array], Array]

_ORDER = 16
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)
_FIRST_PANELS = 16
_DEEPEST = 48  # halvings: a jump of the integrand is cornered in a panel of width 2^-48
_TOLERANCE = 1e-13


@dataclass(frozen=True)
class Piece:
    """A stretch low <= t <= high of a distribution; `place(t)` gives c, 1-c and the mass per unit of t."""

    low: float
    high: float
    place: Callable[[Array], tuple[Array, Array, Array]]


def integrate(pieces: Iterable[Piece], integrand: Integrand) -> float:
    """Integral of `integrand(c, 1-c)` over all pieces; panels are halved until halves agree with the whole twice in a row
    (once may be chance: the two sides of a jump can make up for each other).

    Kinks (|c - T| where T crosses the diagonal) and jumps (step curves) cost more panels, not accuracy.

    >>> flat = Piece(0.0, 1.0, lambda t: (t, 1 - t, np.ones_like(t)))
    >>> round(integrate([flat], lambda c, rest: np.abs(c - 0.3)), 12)  # (0.3^2 + 0.7^2) / 2
    0.29
    """
    return float(sum(_integrate_piece(piece, integrand) for piece in pieces))


def _integrate_piece(piece: Piece, integrand: Integrand) -> float:
    edges = np.linspace(piece.low, piece.high, _FIRST_PANELS + 1)
    low, high = edges[:-1], edges[1:]
    whole = _panel_sums(piece, integrand, low, high)
    agreed = np.zeros(len(low), bool)  # whether the panel's parent agreed with its halves
    total = 0.0
    for _ in range(_DEEPEST):
        middle = 0.5 * (low + high)
        left = _panel_sums(piece, integrand, low, middle)
        right = _panel_sums(piece, integrand, middle, high)
        close = np.abs(left + right - whole) <= _TOLERANCE
        done = close & agreed
        total += float(np.sum((left + right)[done]))
        if done.all():
            return total
        low, high = np.concatenate([low[~done], middle[~done]]), np.concatenate([middle[~done], high[~done]])
        whole, agreed = np.concatenate([left[~done], right[~done]]), np.tile(close[~done], 2)
    return total + float(np.sum(whole))


def _panel_sums(piece: Piece, integrand: Integrand, low: Array, high: Array) -> Array:
    half = 0.5 * (high - low)[:, None]
    t = 0.5 * (high + low)[:, None] + half * _NODES
    c, rest, mass = piece.place(t)
    sums: Array = np.sum(integrand(c, rest) * mass * half * _WEIGHTS, axis=1)
    return sums
