"""The analyses of a study as sections of its page: a few words, notes and a table each."""

from collections.abc import Callable
from typing import Any

from truecal import study
from truecal.errors import InputError
from truecal.report.study import tables as study_tables
from truecal.report.study.numbers import headline, measure_label, wanted_first
from truecal.report.study.tables import Table

MOST_ROWS = 120
_RANKED = 6  # metrics whose rankings are compared
_SCORES = ("nll", "brier")


def analyses(frame: Any) -> list[dict[str, Any]]:
    """Every analysis that the results allow, with the study's main metric; one they do not allow says why."""
    import polars as pl

    lens, metric = headline(frame)
    name = measure_name(frame, metric)
    choice: dict[str, Any] = {"metric": metric, "lens": lens or "top-label"}
    several = [found for at, found in wanted_first(frame) if at == lens][:_RANKED]
    # What no analysis asks for would be read by every one of them and thrown away.
    seen = frame.filter(pl.col("lens").is_in([lens, ""]))
    main = seen.filter(pl.col("metric").is_in([metric, "error"]))
    some = seen.filter(pl.col("metric").is_in([*several, *_SCORES, "error"]))
    found = [
        _section(
            "error-calibration",
            "Calibration against error",
            f"How {name} goes with the error rate, over all models: the slope of a line, and Kendall's tau of the two rankings. "
            "A tau above 0 means that accurate models tend to be well calibrated.",
            lambda: study_tables.trends(study.error_against_calibration(main, **choice)),
        ),
        _section(
            "pareto",
            "Who stays on the Pareto front",
            f"On how many of the fronts of error and a metric each model is: under {', '.join(several)}, on every dataset, "
            "at every severity.",
            lambda: study_tables.fronts(study.pareto(some, metrics=several, lens=choice["lens"])),
        ),
        _section(
            "shifting",
            "Under shift",
            f"How much {name} and the error rate rise with every step of severity (least squares).",
            lambda: study_tables.slopes(study.shift(main, **choice)),
        ),
        _section(
            "in-out",
            "From clean to shifted data",
            f"Kendall's tau over models: does {name}, or the error, on clean data foretell that on shifted data, and do the two go "
            "together there?",
            lambda: study_tables.correlations(study.in_and_out(main, **choice)),
        ),
        _section(
            "residuals",
            "Scores beyond error",
            "Log loss and Brier score after the part that the error rate explains is taken away. Models more than two standard "
            "errors from the line stand out; below it is better.",
            lambda: study_tables.standing_out(study.residuals(some, metrics=_scores(frame))),
        ),
        _section(
            "bins",
            "The number of bins decides",
            "The slope of binned errors on the error rate, by number of bins, beside that of estimators without the bias of bins. "
            "A trend that only many bins show is made by the estimator.",
            lambda: study_tables.bins(study.bin_trend(seen, lens=choice["lens"])),
        ),
        _section(
            "ranks",
            "Do estimators agree?",
            "Kendall's tau between the rankings of the models by two metrics, and how many pairs of models they order in opposite "
            "ways. A flip is supported when the intervals of both metrics tell the two models apart.",
            lambda: study_tables.ranks(study.rank_agreement(some, metrics=several, lens=choice["lens"])),
        ),
    ]
    for place, after in enumerate(sorted(set(frame["recalibrator"]) - {"none"}), 1):
        found.insert(
            place,
            _section(
                f"after-{place}",
                f"What {after} does",
                f"{name[0].upper()}{name[1:]} before and after {after}, mean over models. Tau compares the two rankings: "
                "1 means that recalibration left it as it was.",
                lambda after=after: study_tables.effect(study.effect_of_recalibration(main, after=after, **choice)),  # type: ignore[misc]
            ),
        )
    return found


def measure_name(frame: Any, metric: str) -> str:
    """The metric in words, as it stands inside a sentence."""
    import polars as pl

    about = frame.filter(pl.col("metric") == metric).row(0, named=True)
    name = measure_label(metric, about["bins"], about["norm"], about["scheme"])
    return name[0].lower() + name[1:]


def _section(id_: str, heading: str, intro: str, analysis: Callable[[], Table]) -> dict[str, Any]:
    try:
        notes, header, rows = analysis()
    except InputError as error:
        notes, header, rows = [f"Not for this study: {error}."], [], []
    kept = rows[:MOST_ROWS]
    return {
        "id": id_,
        "heading": heading,
        "intro": intro,
        "notes": [_sentence(note) for note in notes],
        "header": header,
        "rows": [[shown for shown, _ in row] for row in kept],
        "sorts": [[sort for _, sort in row] for row in kept],
        "more": f"The first {MOST_ROWS} of {len(rows):,} rows." if len(rows) > MOST_ROWS else "",
    }


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if note.endswith((".", "?")) else ".")


def _scores(frame: Any) -> list[str]:
    there = set(frame["metric"])
    return [name for name in _SCORES if name in there]
