"""Expectations over a score distribution by adaptive Gauss-Legendre quadrature.

A continuous distribution gives its pieces, each in a coordinate in which its mass is smooth (a Beta(2.8, 0.05) is
unbounded in c and nearly flat in (1-c)^0.05). The integrand gets c and 1-c separately, because 1-c is often far below
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
_ENDS = np.array([-1.0, 1.0])
# Lagrange interpolation
_TO_ENDS = np.stack([[np.prod([(e - b) / (a - b) for b in _NODES if b != a]) for a in _NODES] for e in _ENDS])
_UNSEEN = 0.5 * (1 - _NODES[-1])  # part of a panel beyond its last node
_NUDGE = 2.0**-40  # ends are looked at from just inside: the very ends of a piece may be poles
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
    """Integral of `integrand(c, 1-c)` over all pieces; panels are halved until two halves agree with the whole.

    A jump beyond the last node of a panel is seen by no node. So the ends of a panel must also be where its nodes say, or the
    stretch between must be too short to matter. Kinks (|c - T| where T crosses the diagonal) and jumps (step curves) cost more
    panels, not accuracy.

    >>> flat = Piece(0.0, 1.0, lambda t: (t, 1 - t, np.ones_like(t)))
    >>> round(integrate([flat], lambda c, rest: np.abs(c - 0.3)), 12)  # (0.3^2 + 0.7^2) / 2
    0.29
    """
    return float(sum(_integrate_piece(piece, integrand) for piece in pieces))


def _integrate_piece(piece: Piece, integrand: Integrand) -> float:
    edges = np.linspace(piece.low, piece.high, _FIRST_PANELS + 1)
    low, high = edges[:-1], edges[1:]
    whole, _ = _panel_sums(piece, integrand, low, high)
    total = 0.0
    for _ in range(_DEEPEST):
        middle = 0.5 * (low + high)
        left, left_unseen = _panel_sums(piece, integrand, low, middle)
        right, right_unseen = _panel_sums(piece, integrand, middle, high)
        rough = np.abs(left + right - whole) + left_unseen + right_unseen > _TOLERANCE
        total += float(np.sum((left + right)[~rough]))
        if not rough.any():
            return total
        low, high = np.concatenate([low[rough], middle[rough]]), np.concatenate([middle[rough], high[rough]])
        whole = np.concatenate([left[rough], right[rough]])
    return total + float(np.sum(whole))


def _panel_sums(piece: Piece, integrand: Integrand, low: Array, high: Array) -> tuple[Array, Array]:
    """The integral over each panel, and what a jump between its last nodes and its ends could hide."""
    half = 0.5 * (high - low)[:, None]
    t = 0.5 * (high + low)[:, None] + half * np.concatenate([_NODES, (1 - _NUDGE) * _ENDS])
    c, rest, mass = piece.place(t)
    height = integrand(c, rest) * mass
    inner, ends = height[:, :_ORDER], height[:, _ORDER:]
    unseen = np.abs(ends - inner @ _TO_ENDS.T).sum(axis=1) * 2 * half[:, 0] * _UNSEEN
    return np.sum(inner * half * _WEIGHTS, axis=1), unseen
