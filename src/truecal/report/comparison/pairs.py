"""Pairs of models: the same comparisons for the page and for the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import truecal as tc
from truecal.lens import Lens


@dataclass(frozen=True)
class Pairing:
    """How rows of two models belong together: by their place, by a column `key`, or not at all."""

    key: str | None = None
    paired: bool = True
    reference: str | None = None
    resamples: int = 1000


@dataclass(frozen=True)
class PairRow:
    """Two models: the difference of their errors, with interval and test, alone and adjusted for the number of pairs."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p: float

    @classmethod
    def of(cls, comparison: tc.uncertainty.Comparison) -> "PairRow":
        return cls(
            comparison.a,
            comparison.b,
            float(comparison.difference),
            float(comparison.interval.low),
            float(comparison.interval.high),
            float(comparison.p_value),
            float(comparison.adjusted_p),
        )


def compare_models(
    models: Mapping[str, tc.Predictions] | Mapping[str, tc.Sketch],
    pairing: Pairing,
    *,
    lens: Lens | None,
    level: float,
    rng: int,
) -> Sequence[tc.uncertainty.Comparison]:
    """Every pair of models, or every model with the reference; p-values adjusted for the number of pairs (Holm)."""
    return tc.compare_many(
        models,
        reference=pairing.reference,
        lens=lens,
        key=pairing.key,
        paired=pairing.paired,
        resamples=pairing.resamples,
        level=level,
        rng=rng,
    )
