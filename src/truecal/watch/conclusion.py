"""The conclusion of a watch: one verdict about calibration over time, from which the page is rendered."""

from __future__ import annotations

from dataclasses import dataclass

from truecal import digits, names
from truecal.watch.findings import GroupStep, WatchStep
from truecal.watch.watch import Watch


@dataclass(frozen=True)
class WatchConclusion:
    """Whether calibration is off by more than the tolerance, in which groups, and since when.

    Attributes
    ----------
    step : WatchStep
        The state after the last batch.
    judged : str
        What the scores are of, in words.
    batches : int
        Batches of the group that has most.
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
    judged: str
    batches: int
    tolerance: float
    alpha: float
    run_length: float

    @property
    def affected(self) -> tuple[GroupStep, ...]:
        """Groups that raise the alarm or changed, those with most evidence first."""
        groups = [group for group in self.step.groups.values() if group.alarm or group.changed]
        return tuple(sorted(groups, key=lambda group: -group.log_e))

    @property
    def off(self) -> bool:
        """Whether there is an alarm or a change."""
        return bool(self.step.alarm or self.step.changed)

    @property
    def headline(self) -> str:
        """The verdict in a word."""
        return "Alarm" if self.step.alarm else "Changed" if self.step.changed else "No alarm"

    def where(self, group: GroupStep) -> str:
        """Return the region of scores in which a group is off the most, with what was predicted and observed."""
        region = group.worst
        scores = (
            "all scores" if (region.low, region.high) == (0, 1) else f"scores {region.low:.4g} to {region.high:.4g}"
        )
        kind = "" if group.worst_class is None else f"class {group.worst_class}, "
        return (
            f"{kind}{scores}: {names.tendency(self.judged, region.error)} by {digits.points(abs(region.error))} "
            f"({digits.percent(region.mean_score)} predicted, {digits.percent(region.frequency)} observed)"
        )

    @property
    def sentence(self) -> str:
        """Which group is off since when, in which region of the scores, and what to do."""
        if not self.off:
            return f"No sign that calibration is off by more than {self.tolerance:g}, after {self.batches} batches."
        groups = self.step.groups.values()
        worst = self.affected[0] if self.affected else max(groups, key=lambda group: group.log_e)
        subject = "" if len(groups) == 1 else f"{worst.name}: "
        if len(self.affected) > 1:
            subject = f"{len(self.affected)} of {len(groups)} groups, {worst.name} most: "
        return (
            f"{subject}off by more than {self.tolerance:g} since about {worst.since}; {self.where(worst)}. "
            f"Advice: {worst.advice}."
        )

    @property
    def reading(self) -> str:
        """How often such a verdict is wrong."""
        return (
            f"For a model within the tolerance of {self.tolerance:g} the probability of ever raising the alarm is at most "
            f"{self.alpha:.3g}, however often one looks; a false sign of a change comes at most once in {self.run_length} "
            "batches on average."
        )


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
    batches = max(len(watch.group(*key).history.lines) for key in watch.groups)
    step, limits = watch.step(), (settings.tolerance, settings.alpha, settings.run_length)
    return WatchConclusion(step, watch.judged, batches, *limits)
