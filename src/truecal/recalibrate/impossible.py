"""A row that a method cannot take, such as a true class of probability exactly 0 under a map that keeps zeros."""

from typing import Any

from truecal.errors import InputError
from truecal.types import Indices


class ImpossibleRowError(InputError):
    """A fit was refused because of one row; `row` is its number among the rows the fit was given."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(f"row {row} {why}")
        self.row = row
        self.why = why

    def among(self, rows: Indices) -> "ImpossibleRowError":
        """The same with the row's number in the table of which `rows` were given to the fit."""
        return ImpossibleRowError(int(rows[self.row]), self.why)

    def __reduce__(self) -> tuple[Any, ...]:
        return ImpossibleRowError, (self.row, self.why)
