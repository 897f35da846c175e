"""What a one-dimensional lens is: it decides which score and which outcome of a prediction are judged."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

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

    def refuse_pooled(self) -> None:  # noqa: B027 (most lenses have nothing to refuse)
        """Raise where one row stands for several outcomes, which a test must not take as independent."""
