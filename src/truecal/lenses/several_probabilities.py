"""Lenses that judge several probabilities of a row at once: top k, groups of classes, all classes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.lenses.lens import Lens, Sample, check_lens
from truecal.lenses.one_probability import OneClass
from truecal.predictions.predictions import Predictions
from truecal.predictions.selection import Selection
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# Judge the k most probable classes, in order, and everything else together

_BLOCK = 1 << 16  # probabilities looked at together, so that the passes over a block stay in cache


@dataclass(frozen=True)
class TopK(Lens):
    r"""Events: "the most probable class is right", ..., "the k-th most probable class is right", "none of these" (k + 1 events).

    The top-k lens of eq. 4 in Kirchenbauer, Oaks & Heim (2022), after
    Vaicenavicius et al. (2019), with the rest added so that the events have probability 1 together. Among equal probabilities
    the first class ranks higher, as in :class:`TopLabel`; TopK(1) judges what TopLabel judges.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.125, 0.5, 0.375], [0.25, 0.25, 0.5]], [2, 1])
    >>> top = tc.TopK(2).sample(preds)
    >>> top.scores
    array([[0.5  , 0.375],
           [0.5  , 0.25 ]])
    >>> top.outcomes  # the label of row 0 ranked second; that of row 1 was in the rest
    array([1, 2])
    """

    k: int

    def __post_init__(self) -> None:
        options.whole(self.k, "k")

    @property
    def several(self) -> bool:
        return True

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        preds.refuse_unnormalized(f"TopK({self.k})")
        self._refuse_fewer_classes(preds)
        probs = np.stack([1 - preds.probs, preds.probs], axis=1) if preds.binary else preds.probs
        if preds.binary:  # at 0.5 the positive class is predicted, as by TopLabel
            top, ranks = _ranked(probs[:, ::-1], 1 - preds.labels, self.k)
        else:
            top, ranks = _ranked(probs, preds.labels, self.k)
        names = (*(f"top {i + 1}" for i in range(self.k)), "rest")
        yield Sample.of(preds, top, ranks, names=names, implied=self.k, event=0)

    def _refuse_fewer_classes(self, preds: Predictions) -> None:
        if self.k > preds.class_count:
            raise InputError(f"k is {self.k}, but there are only {preds.class_count} classes; use a smaller k")

    def parts(self, preds: Predictions) -> Sequence[Lens]:
        self._refuse_fewer_classes(preds)
        return [TopK(k) for k in range(1, self.k)]

    def describe(self, preds: Predictions) -> str:
        return "top label" if self.k == 1 else f"top {self.k} labels"


def _ranked(probs: Floats, labels: Indices, k: int) -> tuple[Floats, Indices]:
    """The k largest probabilities of each row in falling order, and the rank of the label (k when it is not among them)."""
    rows, count = probs.shape
    top = np.empty((rows, k), probs.dtype)
    ranks = np.empty(rows, np.intp)
    step = max(1, _BLOCK // count)
    for start in range(0, rows, step):
        block = probs[start : start + step]
        label = labels[start : start + step]
        if k == 1:
            top[start : start + step, 0] = block.max(axis=1)
        else:
            largest = np.partition(block, count - k, axis=1)[:, count - k :]
            largest.sort(axis=1)
            top[start : start + step] = largest[:, ::-1]
        label_score = block[np.arange(len(block)), label][:, None]
        above = np.count_nonzero(block > label_score, axis=1)
        tied = np.flatnonzero((np.count_nonzero(block >= label_score, axis=1) > above + 1) & (above < k))
        if len(tied):  # equal probabilities rank in the order of the classes
            before = np.arange(count) < label[tied, None]
            above[tied] += np.count_nonzero((block[tied] == label_score[tied]) & before, axis=1)
        ranks[start : start + step] = np.minimum(above, k)
    return top, ranks


# ----------------------------------------------------------------------------------------------------
# Judge the whole distribution over the classes


@dataclass(frozen=True)
class Canonical(Lens):
    """Full calibration: among predictions that say g, the classes occur with the frequencies g: P(Y | g(X)) = g(X).

    The strictest condition and the hardest to measure: the more classes, the fewer predictions share a neighbourhood. Look at
    :func:`sweep_granularity` before quoting it.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], [0, 1])
    >>> tc.Canonical().sample(preds).dimension
    3
    """

    @property
    def several(self) -> bool:
        return True

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        preds.refuse_unnormalized("Canonical()")
        names = tuple(preds.class_name(i) for i in range(preds.class_count))
        if preds.binary:
            yield Sample.of(preds, preds.probs[:, None], preds.labels, names=names, implied=0, event=1)
        else:
            yield Sample.of(preds, preds.probs, preds.labels, names=names, implied=None, event=1)

    def describe(self, preds: Predictions) -> str:
        return f"all {preds.class_count} classes together"


# ----------------------------------------------------------------------------------------------------
# Judge groups of classes: miscalibration inside a group does not count, because the same action follows

_BLOCK_GROUPING = 1 << 18  # probabilities added up together


@dataclass(frozen=True)
class Grouping(Lens):
    r"""Events: the label is in group 1, in group 2, ...; the probability of a group is the sum over its classes.

    The grouping lens of eq. 5-6 in Kirchenbauer, Oaks & Heim (2022). Classes are
    given by name, or by index where they have no names; every class must be in exactly one group.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], ["cat", "fox"], classes=["cat", "dog", "fox"])
    >>> pets = tc.Grouping({"pet": ["cat", "dog"], "wild": ["fox"]})
    >>> pets.sample(preds).scores
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    >>> pets.then(tc.TopLabel())(preds).scores  # the most probable group only
    array([[0.5 , 0.75]])
    """

    groups: tuple[tuple[str, tuple[object, ...]], ...]

    def __init__(self, groups: Mapping[str, Sequence[object]]) -> None:
        if not isinstance(groups, Mapping) or not groups:
            raise InputError(
                f"groups must be a mapping such as {{'pet': ['cat', 'dog'], 'wild': ['fox']}}, not {groups!r}"
            )
        members_by_name = []
        for name, members in groups.items():
            if isinstance(members, (str, bytes)) or not isinstance(
                members, (Sequence, set, frozenset, np.ndarray, range)
            ):
                raise InputError(f"group {name!r} must list its classes, not be {members!r}")
            if len(members) == 0:
                raise InputError(f"group {name!r} is empty; every group needs at least one class")
            members_by_name.append((name, tuple(members)))
        group_of: dict[object, str] = {}
        for name, members in members_by_name:
            for member in members:
                if member in group_of:
                    raise InputError(
                        f"class {member!r} is in group {group_of[member]!r} and again in {name!r}; groups must not overlap"
                    )
                group_of[member] = name
        object.__setattr__(self, "groups", tuple(members_by_name))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.groups)

    def group_of(self, preds: Predictions) -> Indices:
        """The group of every class, shape (classes,)."""
        group = np.full(preds.class_count, -1, np.intp)
        twice = []
        for i, (_, members) in enumerate(self.groups):
            for member in members:
                index = preds.class_index(member)
                if group[index] >= 0:
                    twice.append(preds.class_name(index))
                group[index] = i
        if twice:
            raise InputError(f"classes in more than one group: {_listed(twice)}; groups must not overlap")
        missing = [preds.class_name(int(i)) for i in np.flatnonzero(group < 0)]
        if missing:
            raise InputError(f"classes in no group: {_listed(missing)}; add them, for example as {{'other': [...]}}")
        return group

    def predictions(self, preds: Predictions) -> Predictions:
        """The induced Predictions, whose classes are the groups: any lens, selection or estimator can follow."""
        preds.refuse_unnormalized("a grouping")
        group = self.group_of(preds)
        if len(self.groups) == 1:
            raise InputError(f"all classes are in one group ({self.groups[0][0]!r}): nothing is left to judge")
        if preds.binary:
            probs = np.empty((len(preds), 2))
            probs[:, group[0]], probs[:, group[1]] = 1.0 - preds.probs, preds.probs
        else:
            member = (group[:, None] == np.arange(len(self.groups))).astype(np.float64)
            probs = np.empty((len(preds), len(self.groups)))
            step = max(1, _BLOCK_GROUPING // preds.class_count)
            for start in range(0, len(preds), step):
                np.matmul(preds.probs[start : start + step].astype(np.float64), member, out=probs[start : start + step])
            np.minimum(probs, 1.0, out=probs)  # sums of a row that adds up to 1 only within tolerance
        return replace(preds, probs=probs, labels=group[preds.labels], classes=self.names)

    @property
    def several(self) -> bool:
        return True

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        yield from Canonical().samples(self.predictions(preds))

    def parts(self, preds: Predictions) -> Sequence[Lens]:
        return [self.then(OneClass(name)) for name in self.names]

    def describe(self, preds: Predictions) -> str:
        return f"{len(self.groups)} groups of classes"

    def coarser(self, groups: Mapping[str, Sequence[object]]) -> "Grouping":
        """The next level of a hierarchy: groups of these groups, as a Grouping of the original classes.

        >>> import truecal as tc
        >>> genus = tc.Grouping({"Felis": ["cat"], "Canis": ["dog", "wolf"], "Vulpes": ["fox"]})
        >>> genus.coarser({"cats": ["Felis"], "dogs": ["Canis", "Vulpes"]}).groups
        (('cats', ('cat',)), ('dogs', ('dog', 'wolf', 'fox')))
        """
        upper = Grouping(groups)
        lower: dict[object, tuple[object, ...]] = dict(self.groups)
        members_used = [member for _, members in upper.groups for member in members]
        unknown = [str(member) for member in members_used if member not in lower]
        if unknown:
            raise InputError(
                f"there is no group {_listed(unknown)} to group further; the groups are {_listed(list(lower))}"
            )
        missing = [str(name) for name in lower if name not in members_used]
        if missing:
            raise InputError(f"groups in no coarser group: {_listed(missing)}; every one needs a place")
        return Grouping({name: tuple(c for m in members for c in lower[m]) for name, members in upper.groups})

    def then(self, lens: Lens, *, select: Selection | None = None) -> "GroupedLens":
        """This grouping first, then (of the rows selected by what the groups say) another lens on the groups."""
        check_lens(lens)
        return GroupedLens(self, lens, select)


def _listed(names: Sequence[object]) -> str:
    text = ", ".join(map(str, names[:10]))
    return text if len(names) <= 10 else f"{text} and {len(names) - 10} more"


@dataclass(frozen=True)
class GroupedLens(Lens):
    """A grouping, then another lens on the groups: usable wherever that lens is, because it decides everything."""

    grouping: Grouping
    lens: Lens
    select: Selection | None = None

    @property
    def several(self) -> bool:
        return self.lens.several

    @property
    def outcome_name(self) -> str:
        return self.lens.outcome_name

    def seen(self, preds: Predictions) -> Predictions:
        """What the second lens looks at."""
        grouped = self.grouping.predictions(preds)
        return grouped if self.select is None else self.select(grouped)

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        yield from self.lens.samples(self.seen(preds))

    def shares(self, preds: Predictions) -> Float64s | None:
        return self.lens.shares(self._names(preds))

    def describe(self, preds: Predictions) -> str:
        chosen = "" if self.select is None else f", where {self.select}"
        return f"{self.lens.describe(self._names(preds))} of {len(self.grouping.groups)} groups{chosen}"

    def _names(self, preds: Predictions) -> Predictions:
        """One grouped row: enough to know the groups by."""
        return self.grouping.predictions(preds.take(np.arange(1)))
