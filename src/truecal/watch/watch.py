"""Control over groups: which of them are called, so that false calls stay rare however many groups there are.

Every group has a share of the evidence, all shares together at most 1. The k groups with the largest share x e-value are called if
the k-th product reaches 1 / (alpha k): the e-BH procedure (Wang and Ramdas 2022) with weights. Under any dependence the expected
share of false calls among the calls is at most alpha, at any time one stops to look; and where no group is off, the chance of ever
calling one is at most alpha, because the weighted mean of all e-values is then at least 1 / alpha.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from math import exp, log
from pathlib import Path
from threading import RLock
from typing import Any, ParamSpec, TypeVar
from warnings import warn

import numpy as np

from truecal import options
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.lenses.lens import Lens, check_lens
from truecal.table import Frame
from truecal.types import Float64s
from truecal.watch.e_processes import Batch, Stream, mixed
from truecal.watch.findings import Group, GroupStep, WatchStep
from truecal.watch.incoming import Incoming, Judged, read
from truecal.watch.state import (
    Arrival,
    History,
    Settings,
    State,
    Undo,
    WatchedGroup,
    canonical_time,
    check_same_kind,
    fingerprint,
    from_text,
    is_far_ahead,
    time_order,
    to_text,
)
from truecal.writing import locked, write_whole

# ----------------------------------------------------------------------------------------------------
# Control over groups: which of them are called, so that false calls stay rare however many groups there are

_KNOWN, _NEW = 0.75, 0.25  # shares of the groups of the first batch, and of all that turn up later


def share(position: int, first: int) -> float:
    """Of a group: one of the `first` of the first batch (position 0), or the position-th of those that turned up later.

    >>> share(0, 4), share(1, 4), round(4 * share(0, 4) + sum(share(k, 4) for k in range(1, 10_000)), 3)
    (0.1875, 0.125, 1.0)
    """
    return _KNOWN / first if position == 0 else _NEW / (position * (position + 1))


def called(logs: Mapping[tuple[str, ...], float], limit: float) -> set[tuple[str, ...]]:
    """The groups to call, from the logs of share x evidence and the log of the limit for a single call.

    >>> sorted(called({("a",): 3.5, ("b",): 2.5, ("c",): 0.0}, 3.0))
    [('a',), ('b',)]
    """
    groups = sorted(logs, key=lambda group: -logs[group])
    values: Float64s = np.array([logs[group] for group in groups])
    passing = np.flatnonzero(values >= limit - np.log(np.arange(1, len(groups) + 1)))
    return set(groups[: int(passing[-1]) + 1]) if len(passing) else set()


# ----------------------------------------------------------------------------------------------------
# tc.Watch: is calibration still within the tolerance? An alarm that is valid whenever one looks

RUN_LENGTH = 1000  # batches between false alarms about a change, on average, unless said otherwise


P = ParamSpec("P")
T = TypeVar("T")


def _alone(method: Callable[P, T]) -> Callable[P, T]:
    """One thread at a time: a batch is counted whole before the next."""

    @wraps(method)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        with arguments[0]._lock:  # type: ignore[attr-defined]
            return method(*arguments, **options)

    return call


class Watch:
    """Watch calibration batch by batch, with alarms that stay valid however often one looks.

    Two questions are answered after every batch. *Has it ever been off?* `alarm`: for a model that is within the tolerance, the
    chance that it is ever raised, over all batches together, is at most `alpha`. *Has it changed?* `changed`: for such a model
    there are at least `run_length` batches between two false alarms on average; it is quicker, because it forgets.

    Parameters
    ----------
    tolerance : float
        The error that is still acceptable, in probability. With 0 any model will be off, given enough rows.
    alpha : float
        Chance of a false alarm, ever; the level of confidence sequences is 1 - alpha.
    lens : TopLabel, OneClass or ClassWise, optional
        What is judged (the e-values of classes are averaged); default as for :func:`measure`.
    by : str or sequence of str, optional
        Columns whose values are watched separately, with control over all of them together.
    run_length : int, optional
        Batches between false alarms about a change, on average; default 1000.

    Notes
    -----
    Within the tolerance means: given the past and the scores of a batch, every outcome is 1 with a probability within `tolerance`
    of its score. Rows of a batch are independent, or clusters say which are not. docs/watch.md has the derivation.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> watch = tc.Watch(tolerance=0.02)
    >>> for day in range(1, 21):  # from the eleventh day on, the odds are half of what is predicted
    ...     p = rng.beta(4, 1, 300)
    ...     true = p if day <= 10 else p / (p + 2 * (1 - p))
    ...     step = watch.update(tc.Predictions.from_probs(p, rng.random(300) < true), at=f"2026-05-{day:02}")
    >>> step.alarm, step.since, step.worst.direction, step.advice
    (True, '2026-05-11', 'predicted too high', 'offset suffices')
    """

    def __init__(
        self,
        tolerance: float = 0.02,
        alpha: float = 0.05,
        lens: Lens | None = None,
        by: str | Sequence[str] | None = None,
        run_length: int | None = None,
    ) -> None:
        if tolerance != 0:
            options.between(tolerance, "tolerance", 0, 0.5)
        options.between(alpha, "alpha", 0, 1)
        check_lens(lens)
        if lens is not None:
            lens.pushed_down()  # refuses what has more than one probability per row and class
        if run_length is not None:
            options.whole(run_length, "run_length", 2)
        columns = () if by is None else (by,) if isinstance(by, str) else tuple(by)
        length = RUN_LENGTH if run_length is None else int(run_length)
        self.settings = Settings(float(tolerance), float(alpha), length, columns)
        self.lens = lens
        self._groups: dict[Group, WatchedGroup] = {}
        self._judged: Judged | None = None
        self._peak = 0.0  # largest log of the mean e-value over all groups since the last restart
        self._undo: Undo | None = None
        self._loaded: tuple[Path, str] | None = None  # file and text this watch was read from
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())

    # ------------------------------------------------------------------ batches

    @_alone
    def update(
        self,
        data: Any,
        at: Any = None,
        *,
        of: int | Mapping[Any, int] | None = None,
        late: bool = False,
        restart: bool = False,
    ) -> WatchStep:
        """Count a batch and return what is known now. A batch that is refused changes nothing.

        Parameters
        ----------
        data : Predictions, Sketch, Scan, mapping of groups to sketches, or a list of these
            A list holds parts of one batch. The answer is the same for rows, parts and sketches.
        at : str, date, datetime or int, optional
            When the batch is from: a date, a time, or a whole number, of one kind in all batches, which come in this order. The
            same batch (`at` and counts) once more changes nothing; other rows at the same time are refused.
        of : int or mapping of groups to int, optional
            How many rows were predicted, where labels are still missing.
        late : bool
            The rows are labels that came late, of a time that was counted before: they are counted as a batch of their own.
        restart : bool
            Forget all evidence first, because the model was repaired.

        Returns
        -------
        WatchStep
            Its `repeated` says that the batch was counted before.

        Raises
        ------
        InputError
            If the batch does not fit: its time, its groups, its classes or its rows.
        """
        incoming = read(data, self.lens, self.settings.by)
        if self._judged is not None and incoming.judged is not None:
            self._judged.refuse_other(incoming.judged)
        if not incoming.batches:
            raise InputError("the batch holds no labelled row; leave it out until labels come")
        when = canonical_time(at, self.latest)
        if self.latest:
            check_same_kind(when, self.latest, "the last batch was at")
        arrivals = self._arrivals(incoming, when, of, late=late, restart=restart)
        fresh = {
            key: batches
            for key, batches in incoming.batches.items()
            if key not in self._groups or not self._groups[key].history.counted(when, fingerprint(batches))
        }
        for key in fresh:
            if key in self._groups and not late:
                self._groups[key].history.check_order(when, self._groups[key].name)
        if not fresh:
            return replace(self.step(when, tuple(incoming.batches)), repeated=True)
        if is_far_ahead(when):
            warn(
                f"{when} is more than a year ahead, and later batches must have later times; if it is a mistake, take it back with "
                "Watch.undo() (truecal watch undo STATE)",
                TruecalWarning,
                stacklevel=3,
            )
        before, judged, peak = dict(self._groups), self._judged, self._peak
        if restart:
            self.restart()
        self._groups.update(
            {key: self._group(key, batches, incoming, len(before)).after(batches) for key, batches in fresh.items()}
        )
        self._judged = self._judged or incoming.judged
        self._peak = max(self._peak, self.log_e)
        step = self._step(arrivals)
        for key, batches in fresh.items():
            self._groups[key] = self._groups[key].with_line(batches, arrivals[key], step.groups[key])
        replaced = (group for key, group in before.items() if self._groups[key] is not group)
        self._undo = Undo(judged, peak, tuple(replace(group, history=History()) for group in replaced), tuple(fresh))
        return step

    def _group(self, key: Group, batches: tuple[Batch, ...], incoming: Incoming, groups_before: int) -> WatchedGroup:
        """The group as it is, or a new one with its share of the evidence."""
        if key in self._groups:
            return self._groups[key]
        later = sum(group.position > 0 for group in self._groups.values())
        new = [other for other in incoming.batches if other not in self._groups]
        position = later + new.index(key) + 1 if groups_before else 0
        streams = tuple(Stream.beginning(self.settings.tolerance, batch) for batch in batches)
        return WatchedGroup(key, position, incoming.shares, incoming.labels, streams)

    def _arrivals(
        self, incoming: Incoming, when: str, of: int | Mapping[Any, int] | None, *, late: bool, restart: bool
    ) -> dict[Group, Arrival]:
        """How the batch of every group came."""
        arrivals = {}
        for key, batches in incoming.batches.items():
            if key in self._groups and len(self._groups[key].streams) != len(batches):
                raise InputError("the watch judges every class of its groups, and this batch one score; use one lens")
            rows, predicted = batches[0].rows, None
            if isinstance(of, Mapping):
                predicted = of.get(key, of.get(", ".join(key)))
            elif len(incoming.batches) == 1:  # otherwise the number is that of all groups together
                predicted = of if of is not None else rows + incoming.dropped if incoming.dropped else None
            if predicted is not None:
                options.whole(predicted, "of", rows)
            arrivals[key] = Arrival(when, rows, predicted, late, restart)
        return arrivals

    @_alone
    def undo(self) -> str:
        """Take back the last batch, as if it had never come.

        Returns
        -------
        str
            The time of the batch.

        Raises
        ------
        InputError
            If there is none: one batch can be taken back, and none after a restart of its own or a merge.
        """
        if self._undo is None:
            raise InputError(
                "there is no batch to take back: only the last one can be, once; for more, start a new state and count the batches "
                "that are right"
            )
        before = {group.key: group for group in self._undo.groups}
        when = self._groups[self._undo.lines[0]].history.lines[-1].at
        for key in self._undo.lines:
            history = History(self._groups.pop(key).history.lines[:-1])
            if key in before:
                self._groups[key] = replace(before.pop(key), history=history)
        self._groups.update({key: replace(group, history=self._groups[key].history) for key, group in before.items()})
        self._judged, self._peak, self._undo = self._undo.judged, self._undo.peak, None
        return when

    # ------------------------------------------------------------------ answers

    @property
    def groups(self) -> tuple[Group, ...]:
        """Groups seen so far, sorted."""
        return tuple(sorted(self._groups))

    @property
    def latest(self) -> str:
        """The time of the latest batch of any group, late labels aside; "" before the first."""
        return max((group.history.latest for group in self._groups.values()), key=time_order, default="")

    @property
    def log_e(self) -> float:
        """Log of the weighted mean of all groups' e-values."""
        shares = self.shares()
        return mixed(
            [self._groups[key].log_e for key in shares], list(shares.values()), max(1 - sum(shares.values()), 0.0)
        )

    def shares(self) -> dict[Group, float]:
        """Every group's share of the evidence: see `truecal.watch.watch`."""
        if not self.settings.by:
            return dict.fromkeys(self._groups, 1.0)
        first = sum(group.position == 0 for group in self._groups.values())
        return {key: share(group.position, first) for key, group in self._groups.items()}

    def step(self, at: str | None = None, groups: Sequence[Group] | None = None) -> WatchStep:
        """Return what the watch says now, without a new batch.

        Parameters
        ----------
        at : str, optional
            Show the rows of the batch of this time instead of the last.
        groups : sequence of tuple of str, optional
            Only these groups.
        """
        if not self._groups:
            raise InputError("the watch has seen no batch yet")
        arrivals = {}
        for key in self._groups if groups is None else groups:
            lines = self.group(*key).history.lines
            line = next((line for line in reversed(lines) if line.at == at), lines[-1])
            arrivals[key] = Arrival(line.at, line.rows, line.of, line.late, line.restart)
        return self._step(arrivals)

    def _step(self, arrivals: Mapping[Group, Arrival]) -> WatchStep:
        shares, settings = self.shares(), self.settings
        evidence = {key: self._groups[key].log_e + log(shares[key]) for key in shares}
        change = {key: self._groups[key].log_change + log(shares[key]) for key in shares}
        alarmed = called(evidence, -log(settings.alpha))
        changed = called(change, log(settings.run_length))
        if not settings.by and self._peak >= -log(settings.alpha):
            alarmed = set(self._groups)  # one group: once it has been off, it has been off
        steps: dict[Group, GroupStep] = {
            key: self._groups[key].step(
                arrivals[key], settings, self.lens_name, alarm=key in alarmed, changed=key in changed
            )
            for key in sorted(arrivals)
        }
        return WatchStep(
            at=max((arrival.at for arrival in arrivals.values()), key=time_order),
            groups=steps,
            called=tuple(sorted(alarmed)),
            log_e=self.log_e,
            p_value=min(1.0, exp(-self._peak)),
            alarm=self._peak >= -log(settings.alpha),
            changed=bool(changed),
        )

    def group(self, *key: object) -> WatchedGroup:
        """Return everything known of one group, for pages and plots."""
        name = tuple(map(str, key))
        if name not in self._groups:
            names = "; ".join(", ".join(group) for group in self.groups[:10]) or "none yet"
            raise InputError(f"there is no group {', '.join(name)!r}; the groups are {names}")
        return self._groups[name]

    def frame(self, *key: object) -> Frame:
        """Return the history of a group (without a key: of the only one): one row per batch, of the last 730.

        `error`, `low` and `high` are the mean difference (predicted - observed) since the last restart and its confidence sequence,
        `batch_error` is that of the batch alone.
        """
        return self.group(*key).history.frame()

    @property
    def lens_name(self) -> str:
        """What is judged, in words."""
        return "scores" if self._judged is None else self._judged.words

    # ------------------------------------------------------------------ repairs and files

    @_alone
    def restart(self, *groups: object) -> None:
        """Forget the evidence of all groups, or of those named, after a repair; what was seen before is still shown on pages."""
        keys = [self.group(*(key if isinstance(key, tuple) else (key,))).key for key in groups] or list(self._groups)
        self._groups.update({key: self._groups[key].restarted() for key in keys})
        self._peak = max(self.log_e, 0.0) if self._groups else 0.0
        self._undo = None

    @_alone
    def merge(self, other: "Watch") -> "Watch":
        """Take in the groups of another watch with the same settings, none of which is in this one; return this watch."""
        if other.settings != self.settings or other.lens != self.lens:
            raise InputError(f"only watches with the same settings merge: {self.settings} and {other.settings}")
        both = sorted(set(self._groups) & set(other._groups))
        if both:
            raise InputError(f"both watches hold the group {', '.join(both[0])!r}; merge states of disjoint groups")
        if self._judged is not None and other._judged is not None:
            self._judged.refuse_other(other._judged)
        self._judged = self._judged or other._judged
        shift = max((group.position for group in self._groups.values()), default=0)
        for key, group in other._groups.items():
            self._groups[key] = replace(group, position=group.position + shift if group.position else 0)
        self._peak = max(self._peak, self.log_e) if self._groups else 0.0
        self._undo = None
        return self

    @_alone
    def save(self, path: str | Path) -> Path:
        """Write the state as JSON, whole or not at all.

        Raises
        ------
        FileError
            If another process changed the file since it was read, or if it cannot be written.
        """
        target = Path(path)
        groups = tuple(self._groups[key] for key in sorted(self._groups))
        text = to_text(State(self.settings, self._judged, self._peak, groups, self._undo), self.lens)
        with locked(target):
            file, before = self._loaded or (None, "")
            if file == target.resolve() and target.exists() and target.read_text(encoding="utf-8") != before:
                raise FileError(f"{target} was changed by another process since it was read; load it and update again")
            write_whole(target, text)
        self._loaded = (target.resolve(), text)
        return target

    @classmethod
    def load(cls, path: str | Path) -> "Watch":
        """Read a state that :meth:`save` wrote.

        Raises
        ------
        FileError
            If the file cannot be read, is damaged, or has another version of the format.
        """
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"cannot read the state {file}: {getattr(error, 'strerror', None) or error}") from error
        state, lens = from_text(text, file.name)
        settings = state.settings
        watch = cls(settings.tolerance, settings.alpha, lens, settings.by or None, settings.run_length)
        watch._judged, watch._peak, watch._undo = state.judged, state.peak, state.undo
        watch._groups = {group.key: group for group in state.groups}
        watch._loaded = (file.resolve(), text)
        return watch

    def __repr__(self) -> str:
        settings = self.settings
        many = f", {len(self._groups)} groups" if settings.by else ""
        batches = max((len(group.history.lines) for group in self._groups.values()), default=0)
        return f"Watch(tolerance={settings.tolerance:g}, alpha={settings.alpha:g}{many}, {batches} batches, {self.lens_name})"
