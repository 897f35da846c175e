"""The conclusion of a watch: one verdict about calibration over time, from which text, JSON and the page are rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

from truecal.table import plain
from truecal.watch.findings import Group, GroupStep, WatchStep
from truecal.watch.watch import Watch


@dataclass(frozen=True)
class WatchConclusion:
    """Whether calibration is off by more than the tolerance, in which groups, and since when.

    Attributes
    ----------
    step : WatchStep
        The state after the last batch.
    limits : mapping of tuple of str to float
        The log e-value at which each group alone raises the alarm.
    batches : int
        Largest number of batches of a group.
    tolerance : float
        The tolerated error.
    alpha : float
        Probability of ever raising a false alarm.
    run_length : float
        Batches between false signs of a change, on average.

    See Also
    --------
    conclude_watch : The function that returns it.
    """

    step: WatchStep
    limits: Mapping[Group, float]
    batches: int
    tolerance: float
    alpha: float
    run_length: float

    @property
    def affected(self) -> tuple[GroupStep, ...]:
        """Groups that raise the alarm or changed, by falling log e-value."""
        groups = [group for group in self.step.groups.values() if group.alarm or group.changed]
        return tuple(sorted(groups, key=lambda group: -group.log_e))

    @property
    def headline(self) -> str:
        """The verdict in a word: "Alarm", else "Changed", else "No alarm"."""
        return "Alarm" if self.step.alarm else "Changed" if self.step.changed else "No alarm"

    @property
    def passed(self) -> bool:
        """Whether there is neither an alarm nor a change."""
        return not (self.step.alarm or self.step.changed)

    @property
    def sentence(self) -> str:
        """Sentence on the affected group of most evidence, when and where it is off, and the advice.

        Such as "off by more than 0.02 since about 2026-05-11; <where>. Advice: <remedy>." Its name precedes it among several
        groups, with the number of affected ones if there are more. Without an alarm or change: "No sign that calibration is off
        by more than 0.02, after 20 batches."
        """
        if self.passed:
            batches = "1 batch" if self.batches == 1 else f"{self.batches} batches"
            return f"No sign that calibration is off by more than {self.tolerance:g}, after {batches}."
        groups = self.step.groups.values()
        worst = self.affected[0] if self.affected else max(groups, key=lambda group: group.log_e)
        subject = "" if len(groups) == 1 else f"{worst.name}: "
        if len(self.affected) > 1:
            subject = f"{len(self.affected)} of {len(groups)} groups, above all {worst.name}: "
        return (
            f"{subject}off by more than {self.tolerance:g} since about {worst.since}; {worst.where}. "
            f"Advice: {worst.remedy}."
        )

    @property
    def reading(self) -> str:
        """Sentence with the error rates of the verdict: probability of a false alarm, batches between false signs of a change."""
        return (
            f"For a model within the tolerance of {self.tolerance:g} the probability of ever raising the alarm is at most "
            f"{self.alpha:.3g}, however often one looks; a false sign of a change comes at most once in {self.run_length} "
            "batches on average."
        )

    @property
    def gate(self) -> str:
        """The last line of a command: "ALARM", "CHANGED" or "NO ALARM", a colon, and the sentence."""
        return f"{self.headline.upper()}: {self.sentence}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: headline, sentence, reading, gate, passed, batches, tolerance, alpha, run_length.

        Also "affected", the names of the affected groups.
        """
        names = ("headline", "sentence", "reading", "gate", "passed", "batches", "tolerance", "alpha", "run_length")
        affected = [group.name for group in self.affected]
        return {**{name: plain(getattr(self, name)) for name in names}, "affected": affected}


def conclude_watch(watch: Watch) -> WatchConclusion:
    """Reach the one verdict about a watch.

    Parameters
    ----------
    watch : Watch
        With at least one batch.

    Returns
    -------
    conclusion : WatchConclusion
        The verdict and its words.

    Examples
    --------
    >>> import truecal as tc
    >>> watch = tc.Watch(tolerance=0.05)
    >>> step = watch.update(tc.Predictions.from_probs([0.2, 0.8] * 50, [0, 1] * 50), at="2026-05-01")
    >>> conclude_watch(watch).headline
    'No alarm'
    """
    settings = watch.settings
    return WatchConclusion(
        step=watch.step(),
        limits={key: -log(settings.alpha * share) for key, share in watch._shares().items()},
        batches=max(len(watch.group(*key).history.lines) for key in watch.groups),
        tolerance=settings.tolerance,
        alpha=settings.alpha,
        run_length=settings.run_length,
    )
