"""The analyses of a study as sections of its page: a few words, notes and a table each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import truecal as tc
from truecal.errors import InputError
from truecal.report.study import tables
from truecal.report.study.numbers import headline, measure_label, wanted_first
from truecal.report.study.record import Analysis
from truecal.report.study.tables import Row, Table

MOST_ROWS = 120
_RANKED = 6  # metrics whose rankings are compared
_SCORES = ("nll", "brier")


@dataclass(frozen=True, eq=False)
class _Results:
    """The results that the analyses of a page read, cut down to what each of them asks for."""

    frame: Any
    lens: str
    metric: str
    metrics: tuple[str, ...]  # whose rankings are compared
    store: Any

    @classmethod
    def of(cls, store: Any, frame: Any) -> "_Results":
        import polars as pl

        lens, metric = headline(frame)
        several = tuple(name for at, name in wanted_first(frame) if at == lens)[:_RANKED]
        return cls(frame.filter(pl.col("lens").is_in([lens, ""])), lens or "top-label", metric, several, store)

    @cached_property
    def name(self) -> str:
        """The main metric in words, as it stands inside a sentence."""
        about = self.frame.filter(self.frame["metric"] == self.metric).row(0, named=True)
        name = measure_label(self.metric, about["bins"], about["norm"], about["scheme"])
        return name[0].lower() + name[1:]

    @cached_property
    def recalibrators(self) -> list[str]:
        """Before, and after the recalibrators there are."""
        return ["none", *sorted(set(self.frame["recalibrator"]) - {"none"})]

    @property
    def reference(self) -> dict[str, str] | None:
        """The clean datasets of shifted ones, where the study says so."""
        return self.store.references() or None

    @cached_property
    def main(self) -> Any:
        """The main metric and the error."""
        return self.frame.filter(self.frame["metric"].is_in([self.metric, "error"]))

    @cached_property
    def compared(self) -> Any:
        """The metrics that are compared, the scores and the error."""
        return self.frame.filter(self.frame["metric"].is_in([*self.metrics, *_SCORES, "error"]))

    def of_lens(self, recalibrator: str) -> Mapping[str, Any]:
        """The lens of the page and one recalibrator, as the analyses take them."""
        return {"lens": self.lens, "recalibrator": recalibrator}

    @property
    def scores(self) -> list[str]:
        there = set(self.frame["metric"])
        return [name for name in _SCORES if name in there]


@dataclass(frozen=True)
class _Question:
    """A section: its words, in which {name} is the main metric and {metrics} those compared, and what answers it."""

    id: str
    heading: str
    intro: str
    answer: Callable[[_Results, str], Table]


_AGAINST_ERROR = _Question(
    "error-calibration",
    "Calibration against error",
    "How {name} goes with the error rate, over all models: the slope of a line, and Kendall's tau of the two rankings. "
    "A tau above 0 means that accurate models tend to be well calibrated.",
    lambda results, after: tables.trends(
        tc.study.error_against_calibration(results.main, metric=results.metric, **results.of_lens(after))
    ),
)
_OTHERS = (
    _Question(
        "pareto",
        "Who stays on the Pareto front",
        "On how many of the fronts of error and a metric each model is: under {metrics}, on every dataset, at every severity.",
        lambda results, after: tables.fronts(
            tc.study.pareto(results.compared, metrics=results.metrics, **results.of_lens(after))
        ),
    ),
    _Question(
        "dominance",
        "Which family is beaten by which",
        "How many models of a family are beaten in both error and {name} by some model of another. A family is dominated where "
        "all of its models are beaten and none of them beats one of the other.",
        lambda results, after: tables.dominated(
            tc.study.dominance(results.main, metric=results.metric, **results.of_lens(after))
        ),
    ),
    _Question(
        "shifting",
        "Under shift",
        "How much {name} and the error rate rise with every step of severity (least squares).",
        lambda results, after: tables.slopes(
            tc.study.shift(results.main, metric=results.metric, reference=results.reference, **results.of_lens(after))
        ),
    ),
    _Question(
        "in-out",
        "From clean to shifted data",
        "Kendall's tau over models: does {name}, or the error, on clean data predict that on shifted data, and do the two go "
        "together there?",
        lambda results, after: tables.correlations(
            tc.study.in_and_out(
                results.main, metric=results.metric, reference=results.reference, **results.of_lens(after)
            )
        ),
    ),
    _Question(
        "log-fits",
        "One law over all datasets?",
        "A line through the logarithms of error and {name}, for each family, over all datasets and severities: a slope of 1 means "
        "that the two grow in proportion.",
        lambda results, after: tables.log_lines(
            tc.study.log_fits(results.main, metric=results.metric, **results.of_lens(after))
        ),
    ),
    _Question(
        "residuals",
        "Scores beyond error",
        "Log loss and Brier score after the part that the error rate explains is taken away. Models more than two standard "
        "errors from the line stand out; below it is better.",
        lambda results, after: tables.standing_out(
            tc.study.residuals(results.compared, metrics=results.scores, recalibrator=after)
        ),
    ),
    _Question(
        "bins",
        "The number of bins decides",
        "The slope of binned errors on the error rate, by number of bins, beside that of estimators without the bias of bins. "
        "A trend that only many bins show is made by the estimator.",
        lambda results, after: tables.bins(tc.study.bin_trend(results.frame, **results.of_lens(after))),
    ),
    _Question(
        "ranks",
        "Do estimators agree?",
        "Kendall's tau between the rankings of the models by two metrics, and how many pairs of models they order in opposite "
        "ways. A flip is supported when the intervals of both metrics tell the two models apart.",
        lambda results, after: tables.ranks(
            tc.study.rank_agreement(results.compared, metrics=results.metrics, **results.of_lens(after))
        ),
    ),
)
_TEMPERATURES = _Question(
    "temperatures",
    "Fitted temperatures",
    "What was fitted on the clean split of every model. A temperature above 1 means that the model was overconfident there, "
    "below 1 underconfident.",
    lambda results, _: tables.temperatures(results.store.fits(), results.frame),
)


def analyses(store: Any, frame: Any) -> list[Analysis]:
    """Every analysis that the results allow, with the study's main metric, before and after recalibration; one they do not allow
    says why."""
    results = _Results.of(store, frame)
    return [
        _section(_AGAINST_ERROR, results, results.recalibrators),
        *(_section(_effect(k, after, results.name), results) for k, after in enumerate(results.recalibrators[1:], 1)),
        _section(_TEMPERATURES, results),
        *(_section(question, results, results.recalibrators) for question in _OTHERS),
    ]


def _effect(place: int, recalibrator: str, name: str) -> _Question:
    return _Question(
        f"after-{place}",
        f"What {recalibrator} does",
        f"{name[0].upper()}{name[1:]} before and after {recalibrator}, mean over models. Tau compares the two rankings: "
        "1 means that recalibration left it as it was.",
        lambda results, _: tables.effect(
            tc.study.effect_of_recalibration(
                results.store, after=recalibrator, metric=results.metric, lens=results.lens
            )
        ),
    )


def _section(question: _Question, results: _Results, recalibrators: Sequence[str] = ()) -> Analysis:
    """The answer as a section; with `recalibrators`, given for each, and every row says for which."""
    notes: list[str] = []
    header: list[str] = []
    rows: list[Row] = []
    for after in recalibrators or ("none",):
        words = "before" if after == "none" else f"after {after}"
        try:
            remarks, names, cells = question.answer(results, after)
        except InputError as error:
            notes.append(f"Not for this study{f', {words}' if len(recalibrators) > 1 else ''}: {error}.")
            continue
        several = len(recalibrators) > 1
        header = [*names, "Recalibration"] if several else list(names)
        notes += [f"{note} [{words}]" if several else note for note in remarks]
        rows += [[*row, (words, words)] if several else row for row in cells]
    kept = rows[:MOST_ROWS]
    return Analysis(
        question.id,
        question.heading,
        question.intro.replace("{name}", results.name).replace("{metrics}", ", ".join(results.metrics)),
        notes=[_sentence(note) for note in notes],
        header=header,
        rows=[[shown for shown, _ in row] for row in kept],
        sorts=[[sort for _, sort in row] for row in kept],
        more=f"The first {MOST_ROWS} of {len(rows):,} rows." if len(rows) > MOST_ROWS else "",
    )


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if note.endswith((".", "?")) else ".")
