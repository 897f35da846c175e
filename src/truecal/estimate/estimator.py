"""What every one-dimensional estimator is: a small frozen value that you call with a Profile."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.estimate.bins import Bins
from truecal.estimate.estimate import Estimate
from truecal.profile import Profile
from truecal.profile.sketch.profile import CellProfile
from truecal.profile.sketch.sketch import Sketch
from truecal.types import Float64s


@dataclass(frozen=True)
class Findings:
    """What an estimator found beyond its number: bins, warnings, and so on, for the Estimate."""

    power: Float64s
    bins: Bins | None = None
    warnings: tuple[str, ...] = ()
    extra: dict[str, Any] | None = None


@dataclass(frozen=True)
class Estimator(ABC):
    """A calibration-error estimator of a given norm."""

    @property
    @abstractmethod
    def power_norm(self) -> float:
        """The p of the error (E |gap|^p)^(1/p)."""

    @abstractmethod
    def find(self, profile: Profile) -> Findings:
        """The signed estimate of E |gap|^p of every dataset, with what lies behind it."""

    def root(self, power: Float64s) -> Float64s:
        """From the signed p-th power to an error: negative estimates show as 0."""
        p = self.power_norm
        return np.maximum(power, 0.0) if p in (1, np.inf) else np.maximum(power, 0.0) ** (1 / p)

    def values(self, profile: Profile) -> Float64s:
        """The error of every dataset of a batch and nothing else, shape (batch,)."""
        return self.root(self.find(profile).power)

    def __call__(self, profile: Profile | Sketch) -> Estimate:
        """The full Estimate; for a batch its numbers are arrays. From a sketch it says how far it can be from that of all rows."""
        if isinstance(profile, Sketch):
            profile = profile.to_profile()
        if not isinstance(profile, Profile):
            raise InputError(
                f"{type(self).__name__} measures a Profile, not {type(profile).__name__}; "
                "use tc.calibration_error(y_true, y_prob), or a lens such as tc.TopLabel()(predictions)"
            )
        estimate = self.complete(profile)
        if isinstance(profile, CellProfile):
            from truecal.estimate.sketched.error import stated

            return stated(estimate, profile)
        return estimate

    def complete(self, profile: Profile) -> Estimate:
        """The Estimate with all that this estimator offers (an interval, a curve)."""
        return self.report(profile, self.find(profile))

    def report(self, profile: Profile, found: Findings) -> Estimate:
        """Dress up findings as an Estimate."""

        def shown(values: Float64s) -> float | Float64s:
            return float(values[0]) if profile.single else values

        whole = profile.at_count(np.array([[profile.rows]]))
        direction = (profile.sums("c", whole) - profile.sums("y", whole))[:, 0] / profile.total
        return Estimate(
            value=shown(self.root(found.power)),
            power=shown(found.power),
            n=round(float(profile.total.max())) if profile.counted else profile.rows,
            effective_n=shown(profile.size),
            estimator=self,
            norm=self.power_norm,
            direction=shown(direction),
            bins=found.bins,
            warnings=found.warnings,
            **(found.extra or {}),
        )


def check_norm(norm: float, allowed: tuple[float, ...] | None = None) -> None:
    """Refuse a norm that is not a number >= 1, or not among the allowed."""
    if not isinstance(norm, (int, float)) or isinstance(norm, bool) or not norm >= 1:
        raise InputError(f"norm must be a number of at least 1, or inf, not {norm!r}")
    if allowed is not None and norm not in allowed:
        raise InputError(f"norm must be {' or '.join(f'{p:g}' for p in allowed)} here, not {norm:g}")


def check_choice(value: object, choices: tuple[str, ...], name: str) -> None:
    """Refuse an option that is not among its choices."""
    if value not in choices:
        raise InputError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")


def check_bins(bins: object) -> None:
    """Refuse a number of bins that is not a positive whole number."""
    if not isinstance(bins, (int, np.integer)) or isinstance(bins, bool) or bins < 1:
        raise InputError(f"bins must be a whole number of at least 1, not {bins!r}")


def power_mean(gaps: Float64s, share: Float64s, norm: float) -> Float64s:
    """sum_k share_k |gap_k|^p, or the maximum of |gap_k| over bins that hold data for p = inf."""
    if norm == np.inf:
        return np.where(share > 0, np.abs(gaps), 0.0).max(axis=1)
    absolute = np.abs(gaps)
    return (share * (absolute if norm == 1 else absolute**norm)).sum(axis=1)
