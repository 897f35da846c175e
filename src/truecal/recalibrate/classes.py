"""Which class is which column: names decide, not positions.

A recalibrator learns on the columns of X. scikit-learn's scorers read `predict_proba` by `classes_` and expect that to be
sorted. Predictions may name their columns in yet another order. This file keeps the three apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.types import Float64s, Indices


@dataclass(frozen=True, eq=False)
class ClassOrder:
    """The classes of the columns of X.

    Attributes
    ----------
    columns : the name of each column; 0..K-1 where no names were given.
    named : whether names were given.
    sorting : the column of each class of `classes`.
    """

    columns: NDArray[Any]
    named: bool
    sorting: Indices

    @classmethod
    def of(cls, names: Sequence[object] | None, count: int) -> "ClassOrder":
        if names is None:
            return cls(np.arange(count), False, np.arange(count))
        columns = np.array(names)
        try:
            sorting = np.argsort(columns, kind="stable")
        except TypeError:  # names of several types have no order; no scorer can sort them either
            sorting = np.arange(count)
        return cls(columns, True, sorting)

    @property
    def classes(self) -> NDArray[Any]:
        """The names in sorted order."""
        names: NDArray[Any] = self.columns[self.sorting]
        return names

    @property
    def is_sorted(self) -> bool:
        return bool((np.diff(self.sorting) > 0).all())

    def sorted_columns(self, probs: Float64s) -> Float64s:
        """Probabilities with columns in the order of X, in the order of `classes`."""
        return probs if self.is_sorted else probs[:, self.sorting]

    def places_in(self, names: Sequence[object] | None) -> Indices | None:
        """Where each of our columns stands among `names`; None where it stands in its own place, or nothing is named."""
        if names is None or not self.named:
            return None
        ours, theirs = [str(name) for name in self.columns.tolist()], [str(name) for name in names]
        if ours == theirs:
            return None
        if sorted(ours) != sorted(theirs):
            odd = sorted(set(theirs) - set(ours)) or sorted(set(ours) - set(theirs))
            raise InputError(
                f"the recalibrator was fitted on the classes {_listed(ours)}, but the predictions have {_listed(theirs)}; "
                f"{odd[0]!r} is not in both"
            )
        return np.array([theirs.index(name) for name in ours])

    def listed(self, places: Sequence[int]) -> str:
        """Columns by name, for messages."""
        names = self.columns.tolist()
        return _listed([names[k] for k in places])


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
