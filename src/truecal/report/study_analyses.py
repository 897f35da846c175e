"""The analyses of a study as sections of its page: a few words, notes and a table each."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from truecal import study
from truecal.errors import InputError
from truecal.report.study_numbers import headline, measure_label, wanted_first

MOST_ROWS = 60
_RANKED = 6  # metrics whose rankings are compared
_SCORES = ("nll", "brier")
Row = list[tuple[str, float | str]]


def analyses(frame: Any) -> list[dict[str, Any]]:
    """Every analysis that the results allow, with the study's main metric; one they do not allow says why."""
    import polars as pl

    lens, metric = headline(frame)
    name = measure_name(frame, metric)
    choice: dict[str, Any] = {"metric": metric, "lens": lens or "top-label"}
    several = [found for at, found in wanted_first(frame) if at == lens][:_RANKED]
    seen = frame.filter(
        pl.col("lens").is_in([lens, ""])
    )  # everything else would be read by every analysis and thrown away
    main = seen.filter(pl.col("metric").is_in([metric, "error"]))
    some = seen.filter(pl.col("metric").is_in([*several, *_SCORES, "error"]))
    found = [
        _section(
            "error-calibration",
            "Calibration against error",
            f"How {name} goes with the error rate, over all models: the slope of a line, and Kendall's tau of the two rankings. "
            "A tau above 0 means that accurate models tend to be well calibrated.",
            lambda: _trends(study.error_against_calibration(main, **choice)),
        ),
        _section(
            "pareto",
            "Who stays on the Pareto front",
            f"On how many of the fronts of error and a metric each model is: under {', '.join(several)}, on every dataset, "
            "at every severity.",
            lambda: _fronts(study.pareto(some, metrics=several, lens=choice["lens"])),
        ),
        _section(
            "shifting",
            "Under shift",
            f"How much {name} and the error rate rise with every step of severity (least squares).",
            lambda: _slopes(study.shift(main, **choice)),
        ),
        _section(
            "in-out",
            "From clean to shifted data",
            f"Kendall's tau over models: does {name}, or the error, on clean data foretell that on shifted data, and do the two go "
            "together there?",
            lambda: _correlations(study.in_and_out(main, **choice)),
        ),
        _section(
            "residuals",
            "Scores beyond error",
            "Log loss and Brier score after the part that the error rate explains is taken away. Models more than two standard "
            "errors from the line stand out; below it is better.",
            lambda: _residuals(study.residuals(some, metrics=_scores(frame))),
        ),
        _section(
            "bins",
            "The number of bins decides",
            "The slope of binned errors on the error rate, by number of bins, beside that of estimators without the bias of bins. "
            "A trend that only many bins show is made by the estimator.",
            lambda: _bins(study.bin_trend(seen, lens=choice["lens"])),
        ),
        _section(
            "ranks",
            "Do estimators agree?",
            "Kendall's tau between the rankings of the models by two metrics, and how many pairs of models they order in opposite "
            "ways. A flip is supported when the intervals of both metrics tell the two models apart.",
            lambda: _ranks(study.rank_agreement(some, metrics=several, lens=choice["lens"])),
        ),
    ]
    for after in sorted(set(frame["recalibrator"]) - {"none"}):
        found.insert(
            1,
            _section(
                f"after-{len(found)}",
                f"What {after} does",
                f"{name[0].upper()}{name[1:]} before and after {after}, mean over models. Tau compares the two rankings: "
                "1 means that recalibration left it as it was.",
                lambda after=after: _effect(study.effect_of_recalibration(main, after=after, **choice)),  # type: ignore[misc]
            ),
        )
    return found


def measure_name(frame: Any, metric: str) -> str:
    """The metric in words, as it stands inside a sentence."""
    import polars as pl

    about = frame.filter(pl.col("metric") == metric).row(0, named=True)
    name = measure_label(metric, about["bins"], about["norm"], about["scheme"])
    return name[0].lower() + name[1:]


def _section(
    id_: str, heading: str, intro: str, analysis: Callable[[], tuple[Sequence[str], list[str], list[Row]]]
) -> dict[str, Any]:
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


# ------------------------------------------------------------------ one function per analysis: notes, header, rows


def _trends(found: Any) -> tuple[Sequence[str], list[str], list[Row]]:
    rows = [
        [*_place(row), _whole(row["models"]), *_with_ends(row, "slope"), *_with_ends(row, "kendall")]
        for row in found.trends().rows(named=True)
        if row["family"] is None
    ]
    return found.notes, ["Dataset", "Severity", "Models", "Slope", "Interval", "Kendall's tau", "Interval of tau"], rows


def _fronts(found: Any) -> tuple[Sequence[str], list[str], list[Row]]:
    always = found.always
    first = f"on every front: {', '.join(always)}" if always else "no model is on every front"
    rows = [
        [
            _text(row["model"]),
            _text(row["family"] or ""),
            _whole(row["fronts"]),
            _whole(row["of"]),
            (f"{row['share']:.0%}", row["share"]),
        ]
        for row in found.counts().rows(named=True)
    ]
    return [first, *found.notes], ["Model", "Family", "On the front", "Of", "Share"], rows


def _slopes(found: Any) -> tuple[Sequence[str], list[str], list[Row]]:
    rows = [
        [
            _text(row["model"]),
            _text(row["family"] or ""),
            _text(row["dataset"]),
            *_with_ends(row, "slope", "slope_low", "slope_high"),
            *_with_ends(row, "error_slope", "error_low", "error_high"),
        ]
        for row in found.slopes().sort("dataset", "slope").rows(named=True)
    ]
    header = ["Model", "Family", "Dataset", "Metric per step", "Interval", "Error per step", "Interval of error"]
    return found.notes, header, rows


def _correlations(found: Any) -> tuple[Sequence[str], list[str], list[Row]]:
    rows = [
        [*_place(row), _text(row["pair"]), _whole(row["models"]), *_with_ends(row, "value", "low", "high")]
        for row in found.correlations().rows(named=True)
        if row["method"] == "kendall"
    ]
    return found.notes, ["Dataset", "Severity", "Pair", "Models", "Kendall's tau", "Interval"], rows


def _residuals(found: Any) -> tuple[Sequence[str], list[str], list[Row]]:
    import polars as pl

    table = found.frame().filter(pl.col("standardized").abs() > 2).sort("metric", "standardized")
    rows = [
        [
            _text(row["model"]),
            _text(row["metric"]),
            *_place(row),
            _number(row["value"]),
            _number(row["expected"]),
            _number(row["standardized"], 1),
        ]
        for row in table.rows(named=True)
    ]
    return found.notes, ["Model", "Score", "Dataset", "Severity", "Value", "By the line", "Standard errors"], rows


def _bins(found: Any) -> tuple[Sequence[str], list[str], list[Row]]:
    rows = [
        [
            *_place(row),
            _text(row["metric"]),
            ("" if row["bins"] is None else str(row["bins"]), float(row["bins"] or 0)),
            _text("no" if row["debiased"] else "yes"),
            *_with_ends(row, "slope", "low", "high"),
        ]
        for row in found.frame().sort("severity", "dataset", maintain_order=True).rows(named=True)
    ]
    return found.notes, ["Dataset", "Severity", "Metric", "Bins", "Biased", "Slope", "Interval"], rows


def _ranks(found: Any) -> tuple[Sequence[str], list[str], list[Row]]:
    rows = [
        [
            *_place(row),
            _text(f"{row['metric_a']} and {row['metric_b']}"),
            *_with_ends(row, "tau", "low", "high"),
            _whole(row["pairs"]),
            _whole(row["flips"]),
            _whole(row["supported_flips"]),
        ]
        for row in found.frame().sort("severity", "tau").rows(named=True)
    ]
    header = [
        "Dataset",
        "Severity",
        "Metrics",
        "Kendall's tau",
        "Interval",
        "Pairs of models",
        "Flips",
        "Supported flips",
    ]
    return found.notes, header, rows


def _effect(found: Any) -> tuple[Sequence[str], list[str], list[Row]]:
    rows = [
        [
            *_place(row),
            _number(row["before"]),
            _number(row["after"]),
            (f"{row['improved']} of {row['models']}", float(row["improved"])),
            _whole(row["improved_supported"]),
            *_with_ends(row, "tau"),
        ]
        for row in found.summary().rows(named=True)
    ]
    header = ["Dataset", "Severity", "Before", "After", "Improved", "Beyond intervals", "Kendall's tau", "Interval"]
    return found.notes, header, rows


def _scores(frame: Any) -> list[str]:
    there = set(frame["metric"])
    return [name for name in _SCORES if name in there]


# ------------------------------------------------------------------ cells: what is shown, what it sorts by


def _text(value: object) -> tuple[str, str]:
    return str(value), str(value)


def _place(row: dict[str, Any]) -> Row:
    return [_text(row["dataset"]), (f"{row['severity']:g}", float(row["severity"]))]


def _whole(value: Any) -> tuple[str, float | str]:
    return ("", -1.0) if value is None else (f"{value:,}", float(value))


def _number(value: float | None, digits: int = 4) -> tuple[str, float | str]:
    return (f"{value:.{digits}f}", float(value)) if value is not None and isfinite(value) else ("", -1e9)


def _with_ends(row: dict[str, Any], name: str, low: str | None = None, high: str | None = None) -> Row:
    """A number, and its interval in a cell of its own."""
    ends = [row[low or f"{name}_low"], row[high or f"{name}_high"]]
    known = all(end is not None and isfinite(end) for end in ends)
    value = _number(row[name], 3)
    return [value, (f"{ends[0]:.3f} to {ends[1]:.3f}", float(ends[0])) if known else ("", -1e9)]
