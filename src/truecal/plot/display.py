"""What a display is: computed numbers in, `plot(ax=)` draws them, `frame()` returns them."""

from abc import ABC, abstractmethod
from typing import Any, Self

from truecal.errors import InputError
from truecal.frame import Frame
from truecal.plot.canvas import fit_small, made_small, new_axes

Numbers = Any  # whatever holds columns: see Frame.of


class Display(ABC):
    """A picture of the rows of a frame; after `plot`, `figure_` and `ax_` are what it was drawn on.

    The constructor takes numbers that were computed before (any mapping of columns); a classmethod `from_...` computes them.
    """

    def __init__(self, numbers: Numbers, *needed: str) -> None:
        self._frame = Frame.of(numbers)
        if not len(self._frame):
            raise InputError("there is nothing to draw: the columns are empty")
        missing = [name for name in needed if name not in self._frame]
        if missing:
            raise InputError(
                f"the numbers to draw have no column {missing[0]!r}; they have {', '.join(self._frame.columns)}"
            )
        self.figure_: Any = None
        self.ax_: Any = None
        self.narrow_ = False

    def frame(self) -> Frame:
        """The numbers of the picture, one row per thing drawn."""
        return self._frame

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""

    def _open(self, ax: Any, *, size: tuple[float, float] = (6.0, 5.0)) -> Any:
        """The axes to draw on, kept with their figure."""
        self.figure_, self.ax_ = new_axes(ax, size=size)
        self.narrow_ = made_small(self.ax_)
        return self.ax_

    def _done(self, *more: Any) -> Self:
        """What was drawn, made to fit where the axes are narrow; `more` are the other axes it was drawn on."""
        if self.narrow_:
            fit_small([self.ax_, *more])
        return self


def columns(frame: Frame, *names: str) -> list[list[Any]]:
    """Columns as lists of plain values."""
    return [frame[name].tolist() for name in names]
