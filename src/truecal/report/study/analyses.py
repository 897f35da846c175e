"""The analyses of a study as sections of its page: a few words, notes and a table each."""

from collections.abc import Callable, Sequence
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
        several = tuple(found for at, found in wanted_first(frame) if at == lens)[:_RANKED]
        return cls(frame.filter(pl.col("lens").is_in([lens, ""])), lens or "top-label", metric, several, store)

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
    def some(self) -> Any:
        """The metrics that are compared, the scores and the error."""
        return self.frame.filter(self.frame["metric"].is_in([*self.metrics, *_SCORES, "error"]))

    @property
    def scores(self) -> list[str]:
        there = set(self.frame["metric"])
        return [name for name in _SCORES if name in there]


def analyses(store: Any, frame: Any) -> list[Analysis]:
    """Every analysis that the results allow, with the study's main metric, before and after recalibration; one they do not allow
    says why."""
    results = _Results.of(store, frame)
    name = measure_name(frame, results.metric)
    return [
        _error_calibration(results, name),
        *(_recalibrated(results, name, place, after) for place, after in enumerate(results.recalibrators[1:], 1)),
        _temperatures(results),
        _fronts(results),
        _dominance(results, name),
        _shifting(results, name),
        _in_out(results, name),
        _log_fits(results, name),
        _residuals(results),
        _bins(results),
        _ranks(results),
    ]


def _error_calibration(found: _Results, name: str) -> Analysis:
    return _section(
        "error-calibration",
        "Calibration against error",
        f"How {name} goes with the error rate, over all models: the slope of a line, and Kendall's tau of the two rankings. "
        "A tau above 0 means that accurate models tend to be well calibrated.",
        lambda after: tables.trends(
            tc.study.error_against_calibration(found.main, metric=found.metric, lens=found.lens, recalibrator=after)
        ),
        found.recalibrators,
    )


def _fronts(found: _Results) -> Analysis:
    return _section(
        "pareto",
        "Who stays on the Pareto front",
        f"On how many of the fronts of error and a metric each model is: under {', '.join(found.metrics)}, on every dataset, "
        "at every severity.",
        lambda after: tables.fronts(
            tc.study.pareto(found.some, metrics=found.metrics, lens=found.lens, recalibrator=after)
        ),
        found.recalibrators,
    )


def _shifting(found: _Results, name: str) -> Analysis:
    return _section(
        "shifting",
        "Under shift",
        f"How much {name} and the error rate rise with every step of severity (least squares).",
        lambda after: tables.slopes(
            tc.study.shift(
                found.main, metric=found.metric, lens=found.lens, recalibrator=after, reference=found.reference
            )
        ),
        found.recalibrators,
    )


def _in_out(found: _Results, name: str) -> Analysis:
    return _section(
        "in-out",
        "From clean to shifted data",
        f"Kendall's tau over models: does {name}, or the error, on clean data predict that on shifted data, and do the two go "
        "together there?",
        lambda after: tables.correlations(
            tc.study.in_and_out(
                found.main, metric=found.metric, lens=found.lens, recalibrator=after, reference=found.reference
            )
        ),
        found.recalibrators,
    )


def _residuals(found: _Results) -> Analysis:
    return _section(
        "residuals",
        "Scores beyond error",
        "Log loss and Brier score after the part that the error rate explains is taken away. Models more than two standard "
        "errors from the line stand out; below it is better.",
        lambda after: tables.standing_out(tc.study.residuals(found.some, metrics=found.scores, recalibrator=after)),
        found.recalibrators,
    )


def _bins(found: _Results) -> Analysis:
    return _section(
        "bins",
        "The number of bins decides",
        "The slope of binned errors on the error rate, by number of bins, beside that of estimators without the bias of bins. "
        "A trend that only many bins show is made by the estimator.",
        lambda after: tables.bins(tc.study.bin_trend(found.frame, lens=found.lens, recalibrator=after)),
        found.recalibrators,
    )


def _ranks(found: _Results) -> Analysis:
    return _section(
        "ranks",
        "Do estimators agree?",
        "Kendall's tau between the rankings of the models by two metrics, and how many pairs of models they order in opposite "
        "ways. A flip is supported when the intervals of both metrics tell the two models apart.",
        lambda after: tables.ranks(
            tc.study.rank_agreement(found.some, metrics=found.metrics, lens=found.lens, recalibrator=after)
        ),
        found.recalibrators,
    )


def _recalibrated(found: _Results, name: str, place: int, after: str) -> Analysis:
    return _section(
        f"after-{place}",
        f"What {after} does",
        f"{name[0].upper()}{name[1:]} before and after {after}, mean over models. Tau compares the two rankings: "
        "1 means that recalibration left it as it was.",
        lambda _: tables.effect(
            tc.study.effect_of_recalibration(found.store, after=after, metric=found.metric, lens=found.lens)
        ),
    )


def _temperatures(found: _Results) -> Analysis:
    return _section(
        "temperatures",
        "Fitted temperatures",
        "What was fitted on the clean split of every model. A temperature above 1 means that the model was overconfident there, "
        "below 1 underconfident.",
        lambda _: tables.temperatures(found.store.fits(), found.frame),
    )


def _dominance(found: _Results, name: str) -> Analysis:
    return _section(
        "dominance",
        "Which family is beaten by which",
        f"How many models of a family are beaten in both error and {name} by some model of another. A family is dominated where "
        "all of its models are beaten and none of them beats one of the other.",
        lambda after: tables.dominated(
            tc.study.dominance(found.main, metric=found.metric, lens=found.lens, recalibrator=after)
        ),
        found.recalibrators,
    )


def _log_fits(found: _Results, name: str) -> Analysis:
    return _section(
        "log-fits",
        "One law over all datasets?",
        f"A line through the logarithms of error and {name}, for each family, over all datasets and severities: a slope of 1 means "
        "that the two grow in proportion.",
        lambda after: tables.log_lines(
            tc.study.log_fits(found.main, metric=found.metric, lens=found.lens, recalibrator=after)
        ),
        found.recalibrators,
    )


def measure_name(frame: Any, metric: str) -> str:
    """The metric in words, as it stands inside a sentence."""
    import polars as pl

    about = frame.filter(pl.col("metric") == metric).row(0, named=True)
    name = measure_label(metric, about["bins"], about["norm"], about["scheme"])
    return name[0].lower() + name[1:]


def _section(
    id_: str, heading: str, intro: str, analysis: Callable[[str], Table], recalibrators: Sequence[str] = ()
) -> Analysis:
    """An analysis as a section; with `recalibrators`, done for each, and every row says for which."""
    notes: list[str] = []
    header: list[str] = []
    rows: list[Row] = []
    for after in recalibrators or ("none",):
        words = "before" if after == "none" else f"after {after}"
        try:
            remarks, header_here, found = analysis(after)
        except InputError as error:
            notes.append(f"Not for this study{f', {words}' if len(recalibrators) > 1 else ''}: {error}.")
            continue
        several = len(recalibrators) > 1
        header = [*header_here, "Recalibration"] if several else list(header_here)
        notes += [f"{note} [{words}]" if several else note for note in remarks]
        rows += [[*row, (words, words)] if several else row for row in found]
    kept = rows[:MOST_ROWS]
    return Analysis(
        id_,
        heading,
        intro,
        notes=[_sentence(note) for note in notes],
        header=header,
        rows=[[shown for shown, _ in row] for row in kept],
        sorts=[[sort for _, sort in row] for row in kept],
        more=f"The first {MOST_ROWS} of {len(rows):,} rows." if len(rows) > MOST_ROWS else "",
    )


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if note.endswith((".", "?")) else ".")
