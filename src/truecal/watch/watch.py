"""`tc.Watch`: calibration over time, of all rows or of groups, with alarms that are valid after every batch.

Groups. Every group has a share of the evidence; shares sum to at most 1. The k groups with the largest share x e-value raise the
alarm if the k-th product reaches 1 / (alpha k): the e-BH procedure (Wang and Ramdas 2022) with weights. Under any dependence the
expected share of false alarms among them is at most alpha at any stopping time; and where no group is off, the probability of
ever raising an alarm is at most alpha, because the weighted mean of all e-values is then at least 1 / alpha.
"""

from __future__ import annotations

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
from truecal.watch.e_processes import Batch, Stream, log_mean_evidence
from truecal.watch.findings import Group, GroupStep, WatchStep
from truecal.watch.incoming import Incoming, Target, read
from truecal.watch.state import (
    Arrival,
    Settings,
    State,
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

RUN_LENGTH = 1000  # default of `run_length`; by choice: three years of days between false alarms about a change
_FIRST_SHARE, _LATER_SHARE = (
    0.75,
    0.25,
)  # by choice: share of the evidence of the groups of the first batch, and of all later ones


def evidence_share(position: int, first: int) -> float:
    """Return the share of one of the `first` groups of the first batch (position 0), or of the position-th later one.

    0.75 / first, or 0.25 / (k (k + 1)) for position k; all shares sum to 1.

    >>> first, later = evidence_share(0, 4), [evidence_share(k, 4) for k in range(1, 10_000)]
    >>> first, later[0], round(4 * first + sum(later), 3)
    (0.1875, 0.125, 1.0)
    """
    return _FIRST_SHARE / first if position == 0 else _LATER_SHARE / (position * (position + 1))


def alarmed_groups(logs: Mapping[Group, float], limit: float) -> set[Group]:
    """Select groups by e-BH, from the logs of share x evidence and the log of the limit for a single group.

    These are the k groups with the largest logs, for the largest k whose k-th log is at least limit - log k.

    >>> sorted(alarmed_groups({("a",): 3.5, ("b",): 2.5, ("c",): 0.0}, 3.0))
    [('a',), ('b',)]
    """
    groups = sorted(logs, key=lambda group: -logs[group])
    values: Float64s = np.array([logs[group] for group in groups])
    passing = np.flatnonzero(values >= limit - np.log(np.arange(1, len(groups) + 1)))
    return set(groups[: int(passing[-1]) + 1]) if len(passing) else set()


P = ParamSpec("P")
T = TypeVar("T")


def _locked(method: Callable[P, T]) -> Callable[P, T]:
    """Wrap a method of Watch so that it holds the watch's lock: one thread at a time changes the state."""

    @wraps(method)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        """Call the method with the lock of the watch (its first argument) held."""
        with arguments[0]._lock:  # type: ignore[attr-defined]
            return method(*arguments, **options)

    return call


class Watch:
    """Watch calibration batch by batch, with alarms that are valid however often one looks.

    Parameters
    ----------
    tolerance : float, default 0.02
        The error that is acceptable, in probability. With 0 every model will be off, given enough rows.
    alpha : float, default 0.05
        Probability of ever raising a false alarm; the level of confidence sequences is 1 - alpha.
    lens : TopLabel, OneClass or ClassWise, default None
        What is judged; None is the positive class of two, the top label of more. The e-values of classes are averaged.
    by : str or sequence of str, default None
        Columns whose values are watched separately, with control over all of them together.
    run_length : int, default None
        Batches between false alarms about a change, on average; None is 1000.

    Attributes
    ----------
    settings : Settings
        `tolerance`, `alpha`, `run_length` and `by`.
    lens : Lens or None
        What is judged.

    Notes
    -----
    Two questions are answered after every batch. *Has it ever been off?* `alarm`: for a model within the tolerance the
    probability that it is ever raised, over all batches together, is at most `alpha`. *Has it changed?* `changed`: for such a
    model there are at least `run_length` batches between two false alarms on average; it reacts sooner to a change after a long
    good time.

    Within the tolerance means: given the past and the scores of a batch, every outcome is 1 with a probability within
    `tolerance` of its score. Rows of a batch are independent, or come in clusters that are. The derivation is in docs/watch.md.

    References
    ----------
    Ramdas, Grünwald, Vovk, Shafer. Game-theoretic statistics and safe anytime-valid inference. Statistical Science 38, 2023.
    https://doi.org/10.1214/23-STS894
    Shin, Ramdas, Rinaldo. E-detectors: a nonparametric framework for sequential change detection. 2023.
    https://doi.org/10.48550/arXiv.2203.03532
    Wang, Ramdas. False discovery rate control with e-values. Journal of the Royal Statistical Society B 84, 2022.
    https://doi.org/10.1111/rssb.12489

    See Also
    --------
    truecal.report : Write the page of a watch.
    truecal.subgroups : Errors of groups at one time.

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
        """Check and store the settings; refuse a tolerance outside [0, 0.5), an alpha outside (0, 1) and lenses of several scores
        per row.

        A `run_length` is a whole number of at least 2, None is RUN_LENGTH; `by` is stored as a tuple of columns.
        """
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
        self._target: Target | None = None
        self._peak = 0.0  # largest log of the mean e-value over all groups since the last restart
        self._before: State | None = None  # before the last batch, where it can be undone
        self._at = ""  # time of the last batch
        self._loaded: tuple[Path, str] | None = None  # file and text this watch was read from
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickle, without the lock."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes from pickle, with a new lock."""
        vars(self).update(state, _lock=RLock())

    @_locked
    def update(
        self,
        data: Any,
        at: Any = None,
        *,
        of: int | Mapping[Any, int] | None = None,
        late: bool = False,
        restart: bool = False,
    ) -> WatchStep:
        """Count a batch; one that is refused changes nothing.

        Parameters
        ----------
        data : Predictions, Sketch, Scan, mapping of groups to sketches, or a list of these
            A list holds parts of one batch. The answer is the same for rows, parts and sketches.
        at : str, date, datetime or int, default None
            Time of the batch: a date, a time, or a whole number, of one kind in all batches, which come in this order. None
            numbers batches. The same batch (`at` and counts) once more changes nothing; other rows at the same time are refused.
        of : int or mapping of groups to int, default None
            How many rows were predicted, where labels are still missing.
        late : bool, default False
            Whether the rows are labels that came late, of a time that was counted before; they are counted as a batch.
        restart : bool, default False
            Whether to forget all evidence first, because the model was repaired.

        Returns
        -------
        WatchStep
            The state after the batch; `repeated` is True where the batch was counted before.

        Raises
        ------
        InputError
            The time, the groups, the classes or the rows of the batch do not fit.
        """
        incoming = read(data, self.lens, self.settings.by)
        if self._target is not None and incoming.target is not None:
            self._target.refuse_other(incoming.target)
        if not incoming.batches:
            raise InputError("the batch holds no labelled row; leave it out until labels come")
        when = canonical_time(at, self.latest)
        if self.latest:
            check_same_kind(when, self.latest, "the last batch was at")
        arrivals = self._arrivals(incoming, when, of)
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
                f"{when} is more than a year ahead, and later batches must have later times; if it is a mistake, remove it with "
                "Watch.undo() (truecal watch undo STATE)",
                TruecalWarning,
                stacklevel=3,
            )
        before, new = self._state(), not self._groups
        if restart:
            self.restart()
        self._groups.update(
            {key: self._group(key, batches, incoming, first=new).after(batches) for key, batches in fresh.items()}
        )
        self._target = self._target or incoming.target
        self._peak = max(self._peak, self._log_e)
        step = self._step(arrivals)
        for key, batches in fresh.items():
            group = self._groups[key]
            self._groups[key] = group.with_line(batches, step.groups[key], late=late, restart=restart)
        self._at, self._before = when, before
        return step

    def _state(self) -> State:
        """Return the state of this watch, groups sorted by key, with `before` None."""
        groups = tuple(self._groups[key] for key in sorted(self._groups))
        return State(self.settings, self._target, self._peak, groups, self._at)

    def _restore(self, state: State) -> None:
        """Set target, peak, time, groups and the state for `undo` to those of a state; settings and lens stay."""
        self._target, self._peak, self._at, self._before = state.target, state.peak, state.at, state.before
        self._groups = {group.key: group for group in state.groups}

    def _group(self, key: Group, batches: tuple[Batch, ...], incoming: Incoming, *, first: bool) -> WatchedGroup:
        """Return the group of a key, or a new one whose experts are set up from `batches`.

        The position of a new group is 0 in the `first` batch of the watch, else the number of later groups before it plus 1.
        """
        if key in self._groups:
            return self._groups[key]
        later = sum(group.position > 0 for group in self._groups.values())
        new = [new_key for new_key in incoming.batches if new_key not in self._groups]
        position = 0 if first else later + new.index(key) + 1
        streams = tuple(Stream.beginning(self.settings.tolerance, batch) for batch in batches)
        return WatchedGroup(key, position, incoming.shares, incoming.labels, streams)

    def _arrivals(self, incoming: Incoming, when: str, of: int | Mapping[Any, int] | None) -> dict[Group, Arrival]:
        """Return time, labelled and predicted rows of every group of a batch; predicted is None where `of` does not give it.

        A single number `of` (or, without one, labelled plus dropped rows) counts for a batch of one group only. Refuses `of` below
        the labelled rows, and groups with another number of classes than before.
        """
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
            arrivals[key] = Arrival(when, rows, predicted)
        return arrivals

    @_locked
    def undo(self) -> str:
        """Take back the last batch, as if it had never come.

        Returns
        -------
        str
            The time of the batch.

        Raises
        ------
        InputError
            No batch can be removed: only the last one can be, and none after `restart` or `merge`.
        """
        if self._before is None:
            raise InputError(
                "no batch can be removed: only the last one can be, once; for more, start a new state and count the batches "
                "that are right"
            )
        when = self._at
        self._restore(self._before)
        return when

    @property
    def groups(self) -> tuple[Group, ...]:
        """Groups seen so far, sorted."""
        return tuple(sorted(self._groups))

    @property
    def latest(self) -> str:
        """Time of the latest batch of any group, late labels aside; "" before the first."""
        return max((group.history.latest for group in self._groups.values()), key=time_order, default="")

    @property
    def _log_e(self) -> float:
        """Log of the mean of all groups' e-values, weighted by `_shares`; what these leave of 1 weighs an e-value of 1."""
        shares = self._shares()
        return log_mean_evidence(
            [self._groups[key].log_e for key in shares], list(shares.values()), max(1 - sum(shares.values()), 0.0)
        )

    def _shares(self) -> dict[Group, float]:
        """Return every group's share of the evidence; 1 for the only group without `by`.

        0.75 is divided equally among the groups of the first batch; the k-th later group has 0.25 / (k (k + 1)).
        """
        if not self.settings.by:
            return dict.fromkeys(self._groups, 1.0)
        first = sum(group.position == 0 for group in self._groups.values())
        return {key: evidence_share(group.position, first) for key, group in self._groups.items()}

    def step(self, at: str | None = None, groups: Sequence[Group] | None = None) -> WatchStep:
        """Return the state without a new batch.

        Parameters
        ----------
        at : str, default None
            Time of the batch whose rows are shown; None is the last.
        groups : sequence of tuple of str, default None
            The groups to show; None is all of them.

        Returns
        -------
        WatchStep
            The state.

        Raises
        ------
        InputError
            No batch was counted yet.
        """
        if not self._groups:
            raise InputError("no batch was counted yet")
        arrivals = {}
        for key in self._groups if groups is None else groups:
            lines = self.group(*key).history.lines
            line = next((line for line in reversed(lines) if line.at == at), lines[-1])
            arrivals[key] = Arrival(line.at, line.rows, line.of)
        return self._step(arrivals)

    def _step(self, arrivals: Mapping[Group, Arrival]) -> WatchStep:
        """Return the state of the groups in `arrivals`; alarms and changes are selected among all groups by `alarmed_groups`.

        The limit is 1 / alpha for e-values, the run length for the statistics of a change. Without `by` an alarm stays until a
        restart.
        """
        shares, settings = self._shares(), self.settings
        evidence = {key: self._groups[key].log_e + log(shares[key]) for key in shares}
        change = {key: self._groups[key].log_change + log(shares[key]) for key in shares}
        alarmed = alarmed_groups(evidence, -log(settings.alpha))
        changed = alarmed_groups(change, log(settings.run_length))
        if not settings.by and self._peak >= -log(settings.alpha):
            alarmed = set(self._groups)  # the alarm of a single group stays until a restart
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
            log_e=self._log_e,
            p_value=min(1.0, exp(-self._peak)),
            alarm=self._peak >= -log(settings.alpha),
            changed=bool(changed),
        )

    def group(self, *key: object) -> WatchedGroup:
        """Return the streams and the history of one group.

        Parameters
        ----------
        *key : object
            The values of the columns `by`; none for all rows.

        Returns
        -------
        WatchedGroup
            With `history`, `streams` and `name`.

        Raises
        ------
        InputError
            There is no such group.
        """
        name = tuple(map(str, key))
        if name not in self._groups:
            names = "; ".join(", ".join(group) for group in self.groups[:10]) or "none yet"
            raise InputError(f"there is no group {', '.join(name)!r}; the groups are {names}")
        return self._groups[name]

    def frame(self, *key: object) -> Frame:
        """Return the history of a group: one row per batch, of the last 730.

        Parameters
        ----------
        *key : object
            The values of the columns `by`; none for all rows.

        Returns
        -------
        Frame
            `error`, `low` and `high` are the mean difference (predicted - observed) since the last restart and its confidence
            sequence, `batch_error` is that of the batch alone.
        """
        return self.group(*key).history.frame()

    @property
    def lens_name(self) -> str:
        """What the scores are of, in words."""
        return "scores" if self._target is None else self._target.words

    @_locked
    def restart(self, *groups: object) -> None:
        """Discard the evidence of groups after a repair; the history stays, and the last batch can no longer be undone.

        Parameters
        ----------
        *groups : object or tuple
            The groups that were repaired; none for all of them.
        """
        keys = [self.group(*(key if isinstance(key, tuple) else (key,))).key for key in groups] or list(self._groups)
        self._groups.update({key: self._groups[key].restarted() for key in keys})
        self._peak = max(self._log_e, 0.0) if self._groups else 0.0
        self._before = None

    @_locked
    def merge(self, other: Watch) -> Watch:
        """Add the groups of another watch with the same settings.

        Parameters
        ----------
        other : Watch
            A watch of other groups.

        Returns
        -------
        Watch
            This watch.

        Raises
        ------
        InputError
            Settings or lenses differ, or a group is in both.
        """
        if other.settings != self.settings or other.lens != self.lens:
            raise InputError(f"only watches with the same settings merge: {self.settings} and {other.settings}")
        shared = sorted(set(self._groups) & set(other._groups))
        if shared:
            raise InputError(f"both watches hold the group {', '.join(shared[0])!r}; merge states of disjoint groups")
        if self._target is not None and other._target is not None:
            self._target.refuse_other(other._target)
        self._target = self._target or other._target
        shift = max((group.position for group in self._groups.values()), default=0)
        for key, group in other._groups.items():
            self._groups[key] = replace(group, position=group.position + shift if group.position else 0)
        self._peak = max(self._peak, self._log_e) if self._groups else 0.0
        self._before = None
        return self

    @_locked
    def save(self, path: str | Path) -> Path:
        """Write the state as JSON, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        FileError
            Another process changed the file since it was read, or it cannot be written.
        """
        target = Path(path)
        text = to_text(replace(self._state(), before=self._before), self.lens)
        with locked(target):
            file, before = self._loaded or (None, "")
            if file == target.resolve() and target.exists() and target.read_text(encoding="utf-8") != before:
                raise FileError(f"{target} was changed by another process since it was read; load it and update again")
            write_whole(target, text)
        self._loaded = (target.resolve(), text)
        return target

    @classmethod
    def load(cls, path: str | Path) -> Watch:
        """Read a state that :meth:`save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Watch
            The watch, which continues where it was saved.

        Raises
        ------
        FileError
            The file cannot be read, is damaged, or has another version of the format.
        """
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"cannot read the state {file}: {getattr(error, 'strerror', None) or error}") from error
        state, lens = from_text(text, file.name)
        settings = state.settings
        watch = cls(settings.tolerance, settings.alpha, lens, settings.by or None, settings.run_length)
        watch._restore(state)
        watch._loaded = (file.resolve(), text)
        return watch

    def __repr__(self) -> str:
        """Return tolerance, alpha, number of groups (with `by`), of batches, and what is judged.

        >>> Watch()
        Watch(tolerance=0.02, alpha=0.05, 0 batches, scores)
        """
        settings = self.settings
        many = f", {len(self._groups)} groups" if settings.by else ""
        batches = max((len(group.history.lines) for group in self._groups.values()), default=0)
        return f"Watch(tolerance={settings.tolerance:g}, alpha={settings.alpha:g}{many}, {batches} batches, {self.lens_name})"
