"""The page of a watch, from its state: nothing is computed anew."""

from collections.abc import Mapping
from typing import Any

import truecal as tc
from truecal.pages.records import Provenance
from truecal.pages.render import Page
from truecal.watch.conclusion import conclude_watch
from truecal.watch.state import WatchedGroup


class WatchPage(Page):
    """The page of a watch; `groups` are those of its state, in the order of `conclusion.step.groups`."""

    template = "watch.html"

    def drawn(self) -> dict[str, object]:
        """Return history and diagrams of every group, tolerance and name of the outcome, which scripts draw."""
        groups = [
            {
                "name": group.name,
                "limit": self.conclusion.limits[group.key],
                "line": group.history.frame().to_dict(),
                **_diagrams(group),
            }
            for group in self.groups
        ]
        outcome = "Accuracy" if self.lens_name == "top label" else "Frequency"
        return {"groups": groups, "tolerance": self.settings.tolerance, "outcome": outcome}


def gather_watch(watch: tc.Watch, *, title: str = "Calibration over time", command: str | None = None) -> WatchPage:
    """Return the page of a watch from its state.

    `title` is its heading, `command` the command line that it shows, None for a page written by a program.
    """
    settings = watch.settings
    used = {"tolerance": settings.tolerance, "alpha": settings.alpha, "run length": settings.run_length}
    return WatchPage(
        title=title,
        conclusion=conclude_watch(watch),
        settings=settings,
        lens_name=watch.lens_name,
        groups=[watch.group(*key) for key in watch.groups],
        provenance=Provenance({}, command, used),
    )


def _diagrams(group: WatchedGroup) -> Mapping[str, list[dict[str, Any]]]:
    """Return mean score, frequency and rows of the filled bins "before" and "after" the estimated start of a change.

    They are those of the stream with the strongest evidence, {"before": [{"score", "frequency", "rows"}, ...], "after": ...}.
    """
    stream = group.streams[group.leader]
    parts = dict(zip(("before", "after"), stream.blocks.split(stream.start), strict=True))
    return {
        name: [
            {"score": scores / n, "frequency": ones / n, "rows": round(n)} for n, ones, scores in sums.T.tolist() if n
        ]
        for name, sums in parts.items()
    }
