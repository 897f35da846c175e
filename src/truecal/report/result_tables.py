"""The tables of results: by estimator, by class, by group."""

from typing import Any

from truecal.report.html import Cell, element, escaped, table
from truecal.report.methods import ESTIMATOR_WORDS, NORM_WORDS

_PAGE = 20  # rows of a long table shown at first


def estimator_table(content: dict[str, Any]) -> str:
    """Every estimator on the same data."""
    rows = []
    for record in content["estimates"]:
        name, does, reference = ESTIMATOR_WORDS[record["estimator"]["name"]]
        options = record["estimator"]["options"]
        scheme = (
            {"width": ", equal width", "mass": ", equal mass"}.get(options.get("scheme", ""), "")
            if "Binned" in name
            else ""
        )
        interval = record["interval"]
        bins = None if record["bins"] is None else len(record["bins"])
        rows.append(
            [
                Cell(name + scheme),
                Cell(NORM_WORDS.get(record["norm"], record["norm"])),
                Cell(f"{record['value']:.4f}", record["value"]),
                Cell(
                    "" if interval is None else f"{interval['low']:.4f} to {interval['high']:.4f}",
                    _sort(interval, "high"),
                ),
                Cell("" if bins is None else bins, float(bins or 0)),
                Cell(does + ("" if reference is None else f" [{reference}]")),
            ]
        )
    intro = element(
        "p",
        "Estimators disagree because each has its own bias, above all at small errors and small n. Quote one together with its "
        "name; the first row is the recommended one.",
    )
    header = ["Estimator", "Average", "Error", f"{content['level']:.0%} interval", "Bins", "What it does"]
    return intro + table("Estimates of the calibration error", header, rows, id_="estimator-table")


def _sort(record: dict[str, Any] | None, field: str) -> float:
    return -1.0 if record is None else float(record[field])


def class_table(content: dict[str, Any]) -> str:
    """One row per class; nothing for two classes, where the positive one says it all."""
    if content["classes"] is None:
        return ""
    rows = [
        [
            Cell(row["name"], title=row["name"] if len(row["name"]) > 60 else ""),
            Cell(f"{row['labels']:,.10g}", row["labels"]),
            Cell(f"{row['rate']:.4f}", row["rate"]),
            Cell(f"{row['mean']:.4f}", row["mean"]),
            Cell(f"{row['difference']:+.4f}", row["difference"]),
            Cell(f"{row['low']:+.4f} to {row['high']:+.4f}", row["low"]),
            Cell(f"{row['error']:.4f}", row["error"]),
        ]
        for row in content["classes"]["rows"]
    ]
    left_out = content["classes"]["left_out"]
    intro = element(
        "p",
        escaped(
            "Each class's probability against how often that class was the label. The error is root mean square, debiased, 15 "
            "bins of equal mass. Largest errors first."
            + (f" The {left_out:,} classes with smaller errors are not listed." if left_out else "")
        ),
    )
    header = [
        "Class",
        "Labels",
        "Frequency",
        "Mean probability",
        "Difference",
        f"{content['level']:.0%} interval",
        "Error",
    ]
    return intro + table("Calibration of every class", header, rows, page=_PAGE, id_="class-table")


def group_table(content: dict[str, Any]) -> str:
    """One row per group, where groups were asked for."""
    if content["groups"] is None:
        return ""
    groups = content["groups"]
    rows = [
        [
            Cell(row["name"], title=row["name"] if len(row["name"]) > 60 else ""),
            Cell(f"{row['n']:,}", float(row["n"])),
            Cell(f"{row['error']:.4f}", row["error"]),
            Cell(f"{row['low']:.4f} to {row['high']:.4f}", row["low"]),
            Cell(f"{row['direction']:+.4f}", row["direction"]),
            Cell("< 0.001" if row["p_value"] <= 0.001 else f"{row['p_value']:.3f}", row["p_value"]),
        ]
        for row in groups["rows"]
    ]
    left_out = groups["left_out"]
    intro = element(
        "p",
        escaped(
            f"One row per value of {groups['by']!r}, rank-series estimate. With many groups some p-values are small by chance."
            + (f" {left_out:,} smaller groups are not listed." if left_out else "")
        ),
    )
    header = [groups["by"], "Predictions", "Error", f"{content['level']:.0%} interval", "Direction", "p-value"]
    return intro + table("Calibration of every group", header, rows, page=_PAGE, id_="group-table")
