"""Lenses that judge several probabilities of a row at once: top k, groups of classes, all classes."""

from __future__ import annotations

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

_BLOCK = 1 << 16  # derived: probabilities of 512 kB, which stay in cache over several passes


def _refuse_unnormalized(preds: Predictions, what: str) -> None:
    """Raise InputError, with `what` as the subject of its sentence, unless `preds.normalized`: probabilities of a row sum to 1."""
    if not preds.normalized:
        raise InputError(
            f"{what} judges a distribution over the classes, and these rows need not sum to 1; judge one class, "
            "or class by class"
        )


@dataclass(frozen=True)
class TopK(Lens):
    """Judge the k most probable classes of a row at once, in order, and everything else together.

    Parameters
    ----------
    k : int
        Number of classes, at most as many as there are.

    Raises
    ------
    InputError
        k is no whole number of at least 1, or above the number of classes.

    Notes
    -----
    The events are "the most probable class is right", ..., "the k-th most probable class is right" and "none of these": k + 1
    events whose probabilities sum to 1 (equation 4 of Kirchenbauer et al., with the rest added). Among equal probabilities the
    first class ranks higher, as in :class:`TopLabel`; TopK(1) judges what TopLabel judges.

    References
    ----------
    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? ICLR workshop.
    Vaicenavicius, J. et al. (2019). Evaluating model calibration in classification. AISTATS.

    See Also
    --------
    truecal.GeneralizedECE : Measures several probabilities at once.

    Examples
    --------
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
        """Raise InputError unless k is a whole number of at least 1."""
        options.whole(self.k, "k")

    @property
    def several(self) -> bool:
        """True: several probabilities of a row are judged at once."""
        return True

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """Yield the one dataset: the k largest probabilities of every row, descending, and the rank of the label.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        sample : Sample
            Scores (n, k); outcomes 0..k, k where the label is not among them; event k is implied.

        Raises
        ------
        InputError
            There are fewer than k classes, or rows need not sum to 1.
        """
        _refuse_unnormalized(preds, f"TopK({self.k})")
        self._refuse_fewer_classes(preds)
        probs = np.stack([1 - preds.probs, preds.probs], axis=1) if preds.binary else preds.probs
        if preds.binary:  # at 0.5 the positive class is predicted, as by TopLabel
            top, ranks = _rank_classes(probs[:, ::-1], 1 - preds.labels, self.k)
        else:
            top, ranks = _rank_classes(probs, preds.labels, self.k)
        names = (*(f"top {i + 1}" for i in range(self.k)), "rest")
        yield Sample.of(preds, top, ranks, names=names, implied=self.k, event=0)

    def _refuse_fewer_classes(self, preds: Predictions) -> None:
        """Raise InputError for predictions of fewer than k classes.

        >>> import truecal as tc
        >>> TopK(5)._refuse_fewer_classes(tc.Predictions.from_probs([0.2], [0]))
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: k is 5, but there are only 2 classes; use a smaller k
        """
        if self.k > preds.class_count:
            raise InputError(f"k is {self.k}, but there are only {preds.class_count} classes; use a smaller k")

    def parts(self, preds: Predictions) -> Sequence[Lens]:
        """List TopK(1), ..., TopK(k - 1).

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        parts : sequence of Lens
            Empty for k = 1; fewer classes than k are refused.

        Raises
        ------
        InputError
            There are fewer than k classes.
        """
        self._refuse_fewer_classes(preds)
        return [TopK(k) for k in range(1, self.k)]

    def describe(self, preds: Predictions) -> str:
        """Name the lens.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        words : str
            "top 5 labels"; "top label" for k = 1.
        """
        return "top label" if self.k == 1 else f"top {self.k} labels"


def _rank_classes(probs: Floats, labels: Indices, k: int) -> tuple[Floats, Indices]:
    """Return the k largest probabilities of each row, descending, (n, k), and the rank from 0 of the label, (n,).

    The rank is k where the label is not among them; among equal probabilities the first class ranks higher.

    >>> _rank_classes(np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]), np.array([2, 1]), 2)
    (array([[0.5, 0.3],
           [0.4, 0.4]]), array([1, 1]))
    """
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
    r"""Judge the whole distribution over the classes.

    Notes
    -----
    Full calibration: among predictions :math:`g(X) = g` the classes occur with the frequencies g,
    :math:`P(Y = k \mid g(X) = g) = g_k`. It is the strictest condition and the hardest to measure: the more classes, the fewer
    predictions share a neighbourhood. Look at :func:`truecal.estimators.sweep_granularity` before quoting it.

    References
    ----------
    Vaicenavicius, J. et al. (2019). Evaluating model calibration in classification. AISTATS.

    See Also
    --------
    truecal.GeneralizedECE : Measures several probabilities at once.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], [0, 1])
    >>> tc.Canonical().sample(preds).dimension
    3
    """

    @property
    def several(self) -> bool:
        """True: several probabilities of a row are judged at once."""
        return True

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """Yield the one dataset: the probabilities of all classes, and the label.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        sample : Sample
            Scores (n, K), outcomes 0..K-1; of one column, scores (n, 1) of class 1, class 0 is implied.

        Raises
        ------
        InputError
            Rows need not sum to 1.
        """
        _refuse_unnormalized(preds, "Canonical()")
        names = tuple(preds.class_name(i) for i in range(preds.class_count))
        if preds.binary:
            yield Sample.of(preds, preds.probs[:, None], preds.labels, names=names, implied=0, event=1)
        else:
            yield Sample.of(preds, preds.probs, preds.labels, names=names, implied=None, event=1)

    def describe(self, preds: Predictions) -> str:
        """Name the number of classes.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        words : str
            "all 10 classes together".
        """
        return f"all {preds.class_count} classes together"


# ----------------------------------------------------------------------------------------------------
# Judge groups of classes: miscalibration inside a group does not count, because the same action follows

_BLOCK_GROUPING = 1 << 18  # derived: probabilities converted to 2 MB of float64 at a time


@dataclass(frozen=True)
class Grouping(Lens):
    """Judge groups of classes: miscalibration inside a group does not count.

    Parameters
    ----------
    groups : mapping of str to sequence
        Classes of every group, by name, or by index where they have no names; every class is in exactly one group.

    Raises
    ------
    InputError
        Groups overlap, are empty, leave out a class or name one that is not there.

    Notes
    -----
    The events are "the label is in group 1", "in group 2", ...; the probability of a group is the sum over its classes
    (equations 5 and 6 of Kirchenbauer et al.).

    References
    ----------
    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? ICLR workshop.

    See Also
    --------
    truecal.Canonical : All classes, each by itself, at once.

    Examples
    --------
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
        """Store the groups as pairs (name, classes), in the order of the mapping; refuse empty groups and classes that occur
        twice.
        """
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
        """Names of the groups, in order.

        >>> Grouping({"pet": ["cat", "dog"], "wild": ["fox"]}).names
        ('pet', 'wild')
        """
        return tuple(name for name, _ in self.groups)

    def group_of(self, preds: Predictions) -> Indices:
        """Find the group of every class.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        group : ndarray of shape (classes,)
            Numbers of groups.

        Raises
        ------
        InputError
            A member is no class, or a class is in several groups or in none.
        """
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
        """Turn predictions of classes into those of groups: any lens, selection or estimator can follow.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        grouped : Predictions
            Its classes are the groups.

        Raises
        ------
        InputError
            All classes are in one group, rows need not sum to 1, or groups do not fit the classes (`group_of`).
        """
        _refuse_unnormalized(preds, "a grouping")
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
        """True: several probabilities of a row are judged at once."""
        return True

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """Yield the one dataset: the probabilities of all groups, and the group of the label.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        sample : Sample
            That of `Canonical` for the predictions of groups.
        """
        yield from Canonical().samples(self.predictions(preds))

    def parts(self, preds: Predictions) -> Sequence[Lens]:
        """List the lenses on the probability of each group.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        parts : sequence of Lens
            One per group, in order.
        """
        return [self.then(OneClass(name)) for name in self.names]

    def describe(self, preds: Predictions) -> str:
        """Name the number of groups.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        words : str
            "3 groups of classes".
        """
        return f"{len(self.groups)} groups of classes"

    def coarser(self, groups: Mapping[str, Sequence[object]]) -> Grouping:
        """Build the next level of a hierarchy: groups of these groups, as a Grouping of the original classes.

        Parameters
        ----------
        groups : mapping of str to sequence
            Names of the present groups in every new group.

        Returns
        -------
        grouping : Grouping
            Fewer groups of the same classes.

        Raises
        ------
        InputError
            A member is no group, or a group is in several coarser ones or in none.

        Examples
        --------
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
            raise InputError(f"groups in no coarser group: {_listed(missing)}; add each to one")
        return Grouping({name: tuple(c for m in members for c in lower[m]) for name, members in upper.groups})

    def then(self, lens: Lens, *, select: Selection | None = None) -> GroupedLens:
        """Judge the groups by another lens.

        Parameters
        ----------
        lens : Lens
            What of the groups is judged.
        select : Selection, default None
            Which rows, by the labels and probabilities of the groups.

        Returns
        -------
        lens : GroupedLens
            Usable wherever `lens` is.

        Raises
        ------
        InputError
            `lens` is no lens.
        """
        check_lens(lens)
        return GroupedLens(self, lens, select)


def _listed(names: Sequence[object]) -> str:
    """Join up to ten names by commas; of more, the first ten, then "and 5 more".

    >>> _listed(["a", "b"]), _listed(range(12))
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more')
    """
    text = ", ".join(map(str, names[:10]))
    return text if len(names) <= 10 else f"{text} and {len(names) - 10} more"


@dataclass(frozen=True)
class GroupedLens(Lens):
    """Judge groups of classes by another lens, after `select` has chosen rows by their grouped predictions (None: all rows)."""

    grouping: Grouping
    lens: Lens
    select: Selection | None = None

    @property
    def several(self) -> bool:
        """Whether the second lens judges several probabilities of a row at once."""
        return self.lens.several

    @property
    def outcome_name(self) -> str:
        """What the second lens calls the rate of outcomes, such as "accuracy" or "frequency"."""
        return self.lens.outcome_name

    def grouped_predictions(self, preds: Predictions) -> Predictions:
        """Group classes and select rows: the predictions that the second lens judges.

        Parameters
        ----------
        preds : Predictions
            Of the ungrouped classes.

        Returns
        -------
        grouped : Predictions
            Its classes are the groups.
        """
        grouped = self.grouping.predictions(preds)
        return grouped if self.select is None else self.select(grouped)

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """Yield the datasets of the second lens for the grouped predictions."""
        yield from self.lens.samples(self.grouped_predictions(preds))

    def shares(self, preds: Predictions) -> Float64s | None:
        """Return the weights of the datasets of the second lens, or None where it has one."""
        return self.lens.shares(self._names(preds))

    def describe(self, preds: Predictions) -> str:
        """Describe the second lens and the groups, such as "top label of 3 groups", and the selection of rows if there is one.

        >>> import truecal as tc
        >>> preds = tc.Predictions.from_probs([[0.2, 0.5, 0.3]], [1])
        >>> tc.Grouping({"low": [0, 1], "high": [2]}).then(tc.TopLabel()).describe(preds)
        'top label of 2 groups'
        """
        chosen = "" if self.select is None else f", where {self.select}"
        return f"{self.lens.describe(self._names(preds))} of {len(self.grouping.groups)} groups{chosen}"

    def _names(self, preds: Predictions) -> Predictions:
        """Return the first row as grouped predictions, from which the second lens takes the names and number of classes."""
        return self.grouping.predictions(preds.take(np.arange(1)))
