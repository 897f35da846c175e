"""The Lens protocol, and how a lens describes itself to an engine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.lenses.sample import Sample, batch
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.profile.profile import Profile
from truecal.types import Float64s, Floats

# ----------------------------------------------------------------------------------------------------
# What an engine must find in a row: how a lens describes itself to `truecal.engines`, which knows no lens by name


@dataclass(frozen=True)
class PushedDown:
    """The most probable class ("top"), the probability of one class ("class"), or one dataset per class ("classes").

    `index` says which class, of predictions with the same classes.
    """

    kind: Literal["top", "class", "classes"]
    index: Callable[[Predictions], int] | None = None


# ----------------------------------------------------------------------------------------------------
# What a lens is: it decides which scores and which outcomes of predictions are judged

_BLOCK = 1 << 22  # scores sorted at a time where a lens has many datasets (about 100 MB with their prefix sums)


@dataclass(frozen=True)
class Lens(ABC):
    """Predictions -> Samples: one primitive, from which all else follows."""

    @abstractmethod
    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """The datasets this lens looks at, one after the other."""

    @abstractmethod
    def describe(self, preds: Predictions) -> str:
        """What is judged, in words."""

    @property
    def several(self) -> bool:
        """Whether several probabilities of a row are judged at once."""
        return False

    @property
    def outcome_name(self) -> str:
        """What the rate of outcomes is called on an axis or in a sentence."""
        return "frequency"

    def shares(self, preds: Predictions) -> Float64s | None:
        """Weight of each dataset in the overall error, or None where there is one dataset."""
        return None

    def parts(self, preds: Predictions) -> Sequence["Lens"]:
        """Lenses on parts of what this one sees, for a table beside it: smaller k, single groups."""
        return ()

    def every_column(self, preds: Predictions) -> bool:
        """Whether the datasets are the columns of the matrix of probabilities, each with its own class as the outcome."""
        return False

    def pushed_down(self) -> PushedDown:
        """What an engine must find in a row; lenses that need more than that refuse."""
        raise InputError(
            f"{type(self).__name__} cannot be pushed down to an engine; use TopLabel, OneClass or ClassWise"
        )

    def sample(self, preds: Predictions) -> Sample:
        """The one dataset of a lens that has one."""
        if self.shares(preds) is not None:
            raise InputError(f"{type(self).__name__} looks at several datasets; go through its samples(preds)")
        (only,) = self.samples(preds)
        return only

    def judged(self, preds: Predictions) -> tuple[Floats, NDArray[Any]]:
        """Scores and outcomes of the one dataset, without what else a Sample knows: small batches come often."""
        sample = self.sample(preds)
        return sample.scores, sample.outcomes

    def __call__(self, preds: Predictions) -> Profile:
        """The sorted scores and outcomes of what this lens looks at; a batch for a lens with many datasets."""
        check_predictions(preds)
        if self.shares(preds) is None:
            return self.sample(preds).profile
        return batch(list(self.samples(preds)))

    def profiles(self, preds: Predictions) -> Iterator[Profile]:
        """The same in parts of bounded memory."""
        if self.shares(preds) is None:
            yield self.sample(preds).profile
            return
        part: list[Sample] = []
        for sample in self.samples(preds):
            if part and (len(part) + 1) * len(sample) > _BLOCK:
                yield batch(part)
                part = []
            part.append(sample)
        yield batch(part)


def check_lens(lens: object) -> None:
    """Refuse what is neither a lens nor None."""
    if lens is not None:
        options.instance(lens, Lens, "lens", "one of truecal's, such as tc.TopLabel() or tc.TopK(5)")
