"""Which rows share a bin."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from truecal import options
from truecal.estimate.bins import Bins
from truecal.profile import Cut, Profile
from truecal.types import Indices


def distinct_cut(profile: Profile) -> Cut:
    """One bin per distinct score; datasets with fewer of them have empty bins at the end."""
    starts = np.full((profile.scores.shape[0], int(profile.distinct.max()) + 1), profile.rows)
    starts[:, 0] = 0
    for place, scores in zip(starts, profile.scores, strict=True):
        inner = np.flatnonzero(scores[1:] != scores[:-1]) + 1
        place[1 : len(inner) + 1] = inner
    return Cut(starts, starts)


@dataclass(frozen=True)
class Binning:
    """`bins` of equal width or equal mass."""

    bins: int
    scheme: Literal["width", "mass"]
    ties: Literal["keep", "split"] = "keep"
    closed: Literal["left", "right"] = "left"

    def check(self) -> None:
        """Refuse options that make no sense."""
        options.bins(self.bins)
        options.choice(self.scheme, ("width", "mass"), "scheme")
        options.choice(self.ties, ("keep", "split"), "ties")
        options.choice(self.closed, ("left", "right"), "closed")

    def cut(self, profile: Profile) -> Cut:
        return self.cuts(profile, self.bins)

    def bins_of(self, profile: Profile) -> Bins:
        """What the bins hold; made once, for all estimators that look at the same bins."""
        return profile.once(f"{self.bins} {self._rule}", lambda rows: Bins.of(rows, self.cut(rows)))

    @property
    def _rule(self) -> str:
        """What it has in common with other numbers of bins."""
        return f"{self.scheme} {self.ties} {self.closed}"

    @staticmethod
    def make_all(profile: Profile, binnings: "Iterable[Binning]") -> None:
        """Make the bins of all of these together, for :meth:`bins_of` of one dataset to find; units are counted bin by bin."""
        if profile.units is not None:
            return
        rules: dict[str, list[Binning]] = {}
        for one in dict.fromkeys(binnings):
            rules.setdefault(one._rule, []).append(one)
        for alike in rules.values():
            bins = Bins.of(profile, alike[0].cuts(profile, [one.bins for one in alike]))
            end = 0
            for one in alike:
                start, end = end, end + one.bins
                profile.once(f"{one.bins} {one._rule}", partial(bins.part_of, some=slice(start, end)))
                end += 1  # between the last bin of one and the first of the next is none

    def cuts(self, profile: Profile, bins: int | Sequence[int] | Indices) -> Cut:
        """The cuts for other numbers of bins by the same rule: one after the other, or a column of one for each dataset."""
        if self.scheme == "width":
            return profile.width_cut(bins, self.closed)
        return profile.mass_cut(bins, self.ties)
