"""Worlds of few outputs, in which `verify` promises a finite-sample limit, drawn as counts: rows cost nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from truecal.lab.atlas.door import ALPHA, Door, Trials
from truecal.lab.atlas.verdicts import JUST_BELOW
from truecal.lab.worlds.quadrature import Array
from truecal.uncertainty.verify import promised


@dataclass(frozen=True)
class FewOutputs:
    """Outputs with their shares of the rows, and how far their true rates are off."""

    outputs: tuple[float, ...]
    shares: tuple[float, ...]
    off: tuple[float, ...]
    misses: tuple[float, ...] | None = None  # rows expected to be off besides, whatever the size of the dataset

    def at(self, n: int) -> tuple[Array, Array, Array]:
        """Outputs, shares and true rates for datasets of n rows."""
        s, shares, rates = np.array(self.outputs), np.array(self.shares), np.add(self.outputs, self.off)
        if self.misses is not None:
            rates = rates + np.array(self.misses) / (n * shares)
        return s, shares, rates


_RARE = ((0.2, 0.4, 0.6, 0.8, 0.95), (0.3, 0.25, 0.25, 0.1995, 0.0005))
_FIVE, _EVEN = (0.1, 0.3, 0.5, 0.7, 0.9), (0.2,) * 5
FEW_OUTPUTS: Mapping[str, FewOutputs] = MappingProxyType(
    {
        "spread": FewOutputs(_FIVE, _EVEN, (0.05, -0.05, 0.05, -0.05, 0.05)),
        "spread, one off": FewOutputs(_FIVE, (0.4, 0.3, 0.15, 0.1, 0.05), (0.0, 0.0, 0.0, 0.0, -0.2)),
        "confident": FewOutputs((0.5, 0.9, 0.99, 0.999, 0.9999), _EVEN, (-0.02,) * 5),
        "confident, last off": FewOutputs((0.5, 0.9, 0.99, 0.999, 0.9999), _EVEN, (0.0, 0.0, 0.0, 0.0, -0.01)),
        "rare output, off by 0.5": FewOutputs(*_RARE, (0.0, 0.0, 0.0, 0.0, -0.5)),
        "rare output, off by 0.9": FewOutputs(*_RARE, (0.0, 0.0, 0.0, 0.0, -0.9)),
        "all outputs 1, 1.5 misses": FewOutputs((1.0,), (1.0,), (0.0,), (-1.5,)),
        "hard 0 and 1, one miss": FewOutputs((0.0, 1.0), (0.5, 0.5), (0.0, 0.0), (0.5, -0.5)),
    }
)


def few_outputs() -> dict[str, dict[str, FewOutputs]]:
    """Worlds of one to five outputs: spread, near 1, rare, and certain ones."""
    return {"few outputs": dict(FEW_OUTPUTS)}


def _promised(world: FewOutputs, n: int, m: int, rng: np.random.Generator) -> Trials:
    """Whether verify promises an error just below the true one. It is not told which outputs may exist."""
    s, shares, rates = world.at(n)
    truth = float(np.sqrt(shares @ (rates - s) ** 2))
    counts = rng.multinomial(n, shares, size=m)
    ones = rng.binomial(counts, rates)
    distinct, which = np.unique(np.stack([counts, ones], axis=1).astype(np.float64), axis=0, return_inverse=True)
    false = [promised(s, seen, hits, JUST_BELOW * truth, 1 - ALPHA) for seen, hits in distinct]
    return Trials.of_verdicts(np.array(false)[which.ravel()], truth)


PROMISE_DOORS: tuple[Door, ...] = (
    Door(
        "verify, few outputs",
        "promise",
        ALPHA,
        _promised,
        most_rows=20_000,
        least_rows=50,
        worlds=few_outputs,
        counted=True,
        promised=0.06,
    ),
)
