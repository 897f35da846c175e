"""What a one-dimensional lens is: it decides which score and which outcome of a prediction are judged."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from truecal.errors import InputError
from truecal.lens.pushed_down import PushedDown
from truecal.predictions import Predictions
from truecal.profile import Profile
from truecal.types import Float64s


@dataclass(frozen=True)
class Lens(ABC):
    """Predictions -> Profile."""

    @abstractmethod
    def __call__(self, preds: Predictions) -> Profile:
        """The sorted scores and outcomes of what this lens looks at."""

    @abstractmethod
    def describe(self, preds: Predictions) -> str:
        """What is judged, in words."""

    def profiles(self, preds: Predictions) -> Iterator[Profile]:
        """The same in parts of bounded memory; a lens on one quantity has a single part."""
        yield self(preds)

    def shares(self, preds: Predictions) -> Float64s | None:
        """Weight of each dataset in the overall error, or None where there is one dataset with one outcome per row."""
        return None

    @property
    def outcome_name(self) -> str:
        """What the mean outcome is: the accuracy of the top label, else the frequency of an event."""
        return "frequency"

    def pushed_down(self) -> PushedDown:
        """What an engine must find in a row; lenses that need more than that refuse."""
        raise InputError(
            f"{type(self).__name__} cannot be pushed down to an engine; use TopLabel, OneClass or ClassWise"
        )

    def refuse_pooled(self) -> None:  # noqa: B027 (most lenses have nothing to refuse)
        """Raise where one row stands for several outcomes, which a test must not take as independent."""
