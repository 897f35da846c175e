"""What the figures of a study share: a grid of panels, one look for every family, and the choice of what is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from truecal.errors import InputError
from truecal.plot.canvas import new_axes
from truecal.plot.study.families import NO_FAMILY, family_styles

Panel = Callable[[Any], None]  # draws on its axes
_PREFERRED = ("ece-mass-100-l1", "rank-series-l2", "debiased-15-l2", "ece-mass-15-l1", "ece-width-15-l1", "ece")
_NOT_ERRORS = ("error", "confidence", "nll", "brier", "brier-top", "aurc", "best-temperature")


@dataclass(frozen=True)
class External:
    """A point from elsewhere, such as a published model: drawn beside the models, and in no analysis."""

    name: str
    error: float
    value: float
    recalibrator: str = "none"


@dataclass(frozen=True)
class Choice:
    """What a figure shows; what is None is chosen by what the store holds."""

    metric: str | None = None
    lens: str = "top-label"
    selection: str = "all"
    dataset: str | None = None
    covariate: str | None = None
    after: str | None = None
    models: tuple[str, ...] = ()
    external: tuple[External, ...] = ()


@dataclass(frozen=True, eq=False)
class Shown:
    """A store and a choice, resolved: the metric, the recalibrators before and after, the clean dataset, the look of families."""

    store: Any
    frame: Any
    choice: Choice
    metric: str
    recalibrators: tuple[str, ...]
    clean: str

    @classmethod
    def of(cls, store: Any, choice: Choice) -> "Shown":
        frame = store.frame()
        if not frame.height:
            raise InputError("the store holds no finished result yet; run the study first")
        return cls(
            store, frame, choice, _metric(frame, choice), _recalibrators(frame, choice), _clean(store, frame, choice)
        )

    @property
    def styles(self) -> dict[str, dict[str, Any]]:
        """Colour and marker of every family, the same in all panels."""
        return family_styles(self.frame["family"].to_list())

    def options(self, recalibrator: str) -> dict[str, Any]:
        """Keyword arguments of an analysis."""
        return {"lens": self.choice.lens, "selection": self.choice.selection, "recalibrator": recalibrator}

    def when(self, recalibrator: str) -> str:
        """Before or after, in words."""
        return "before recalibration" if recalibrator == "none" else f"after {recalibrator}"


@dataclass(eq=False)
class StudyFigure:
    """A figure of a study: panels in rows, the numbers behind them, and what to know about them."""

    name: str
    panels: Sequence[Sequence[Panel | None]]
    numbers: Any
    notes: tuple[str, ...] = ()
    styles: dict[str, dict[str, Any]] = field(default_factory=dict)
    size: tuple[float, float] = (4.2, 3.6)  # inches of a panel
    figure_: Any = None

    def frame(self) -> Any:
        """The numbers that are drawn, as a table."""
        return self.numbers

    def plot(self) -> "StudyFigure":
        """Draw on a new figure."""
        from matplotlib import pyplot

        down, across = len(self.panels), max(len(row) for row in self.panels)
        wide, high = self.size
        if down == across == 1:
            self.figure_, ax = new_axes(None, size=(wide * 1.6, high * 1.5))
            grid = [[ax]]
        else:
            self.figure_, axes = pyplot.subplots(
                down, across, figsize=(wide * across, high * down), layout="constrained", squeeze=False
            )
            grid = axes.tolist()
        for row, places in zip(self.panels, grid, strict=True):
            for ax in places[len(row) :]:
                ax.set_visible(False)
            for panel, ax in zip(row, places[: len(row)], strict=True):
                if panel is None:
                    ax.set_visible(False)
                else:
                    panel(ax)
        self._legend()
        return self

    def _legend(self) -> None:
        if not self.styles or set(self.styles) == {NO_FAMILY}:
            return
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], linestyle="none", label=name, **style) for name, style in self.styles.items()]
        legend = self.figure_.legend(handles=handles, loc="outside right upper", frameon=False, fontsize="small")
        for text in legend.get_texts():
            text.set_parse_math(False)


def title(ax: Any, words: str) -> None:
    """The title of a panel: names are text, not formulas."""
    ax.set_title(words, fontsize="medium", parse_math=False)


def _metric(frame: Any, choice: Choice) -> str:
    there = frame.filter(frame["lens"].is_in([choice.lens, ""]))["metric"].unique().to_list()
    if choice.metric is not None:
        if choice.metric not in there:
            raise InputError(
                f"there is no metric {choice.metric!r} with the lens {choice.lens!r}; there are {_some(there)}"
            )
        return choice.metric
    errors = [name for name in (*_PREFERRED, *sorted(there)) if name in there and name not in _NOT_ERRORS]
    if not errors:
        raise InputError(
            f"the store holds no calibration error with the lens {choice.lens!r}; there are {_some(there)}"
        )
    return errors[0]


def _recalibrators(frame: Any, choice: Choice) -> tuple[str, ...]:
    there = [name for name in frame["recalibrator"].unique().sort().to_list() if name != "none"]
    if choice.after is not None and choice.after not in there:
        raise InputError(f"there is no recalibrator {choice.after!r} in the results; there is {_some(there)}")
    after = choice.after or ("temperature" if "temperature" in there else there[0] if there else None)
    return ("none",) if after is None else ("none", after)


def _clean(store: Any, frame: Any, choice: Choice) -> str:
    """The clean dataset to show: the one asked for, else the one most others refer to, else the first without shift."""
    import polars as pl

    names = frame.filter(pl.col("severity") == 0)["dataset"].unique(maintain_order=True).to_list()
    if choice.dataset is not None:
        if choice.dataset not in frame["dataset"]:
            raise InputError(
                f"there is no dataset {choice.dataset!r}; there are {_some(frame['dataset'].unique().to_list())}"
            )
        return choice.dataset
    named = [clean for clean in store.references().values() if clean in names]
    if named:
        return max(dict.fromkeys(named), key=named.count)
    if not names:
        raise InputError("the results hold no dataset of severity 0")
    return str(names[0])


def _some(names: Sequence[str], most: int = 12) -> str:
    listed = sorted(map(str, names))
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "") or "nothing"
