"""`truecal measure` and `truecal verify`: the error with its interval and gates, and other numbers of the same rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import truecal as tc
from truecal import digits, names
from truecal.cli.estimators import Asked, estimator_options, lens_option, make_lens
from truecal.cli.output import Finding, Result, Share, answers, number, numbers_in, table, working
from truecal.cli.scan import is_scan, is_sketched, marginal, scan_estimates, scanned, sketch_of
from truecal.cli.source import Loaded, Source, by_option, load, load_all, scan_options
from truecal.errors import InputError
from truecal.inference.conclusion import Conclusion, GroupError, RowCounts, conclude, stated_values
from truecal.lenses.one_probability import default_lens
from truecal.predictions.selection import categories

if TYPE_CHECKING:
    from truecal.lenses.lens import Lens

_ALONE = "every group is judged alone, and of many some look wrong by chance: truecal report judges them together"
_ROW_FIELDS = ("curve", "vector_bins", "settings")  # of an Estimate, which JSON leaves out
_OPTIONAL = ("sketch_error", "sketch_bound", "chance", "selection")


@dataclass(frozen=True)
class Measured:
    """One estimate: the column and the value of its group, empty for all rows."""

    by: str
    group: str
    estimate: "tc.Estimate"

    def record(self) -> dict[str, object]:
        """Return the estimate as `--json` prints it."""
        record = {k: v for k, v in self.estimate.to_dict().items() if k not in _ROW_FIELDS}
        record["norm"] = float(self.estimate.norm) if self.estimate.norm < float("inf") else "inf"
        record = {k: v for k, v in record.items() if v not in (None, "") or k not in _OPTIONAL}
        return {**record, "by": self.by, "group": self.group} if self.by else record


# ----------------------------------------------------------------------------------------------------
# `truecal measure`


@click.command()
@estimator_options
@click.option("--max-error", type=Share(0, 1), help="Gate: exit 1 unless the error is below this, at --level.")
@click.option(
    "--like", metavar="TOOL", help="Beside it the number of another tool, such as torchmetrics, and why it differs."
)
@click.option("--values", "view", flag_value="values", help="How often the outcome happened at each stated score.")
@click.option("--clinical", "view", flag_value="clinical", help="O/E, intercept, slope, ICI, c-statistic, Brier score.")
@click.option("--net-benefit", "view", flag_value="net-benefit", help="Net benefit of acting at --thresholds.")
@click.option(
    "--abstention", "view", flag_value="abstention", help="Share of wrong answers if the least confident are left out."
)
@click.option("--thresholds", metavar="T,...", help="Risks from which one acts.  [default: around the prevalence]")
@answers
@by_option
@click.option("--combine", is_flag=True, help="With several --by: every combination of their values instead.")
@scan_options
def measure(
    source: Source,
    asked: Asked,
    lens: str,
    level: float,
    seed: int,
    max_error: float | None,
    like: str | None,
    view: str | None,
    thresholds: str | None,
) -> Result:
    """Measure the calibration error of the predictions in FILE (csv, jsonl, parquet, npz, or - for standard input).

    A pattern such as 'logs/*.parquet', a folder, or several files are scanned in one pass and in bounded memory; the answer then
    says how far it can be from that of all rows at once. --engine scans a single file too.

    With --max-error this is a gate: it passes (exit 0) only if the upper end of the interval is at most that, so that too little
    data fails as well as too large an error (exit 1). With --by, every group must pass.
    """
    if thresholds is not None and view != "net-benefit":
        raise InputError("--thresholds is for --net-benefit")
    if view is not None:
        if max_error is not None or like is not None:
            raise InputError(f"--max-error and --like are about the calibration error; leave out --{view}")
        return _view(view, source, lens, level, seed, thresholds)
    if asked.estimator == "all" and max_error is not None:
        raise InputError("--max-error judges one estimator; leave out --estimator all")
    if like is not None and (max_error is not None or is_scan(source)):
        raise InputError("--like compares with another tool, row by row; leave out --max-error, and give one file")
    read = _scan if is_scan(source) else _in_memory
    measured, conclusion, facts = read(source, lens, asked, level, seed, max_error, like)
    content: dict[str, object] = {
        "source": source.name,
        "level": level,
        "results": [m.record() for m in measured],
        **facts,
    }
    if conclusion is not None:
        content["conclusion"] = conclusion.to_dict()
    if conclusion is not None and max_error is not None:
        worst = conclusion.worst_group
        gate = {"max_error": max_error, "upper": conclusion.upper, "passed": conclusion.passed}
        content["gate"] = gate if worst is None else {**gate, "worst": worst.name}
    return Result(
        "measure",
        content,
        _text(measured, conclusion),
        [_finding(m, source.name, max_error) for m in measured],
        "" if conclusion is None else conclusion.gate,
        list(dict.fromkeys(note for m in measured for note in m.estimate.warnings)),
        conclusion is not None and conclusion.passed is False,
    )


def _in_memory(
    source: Source, lens: str, asked: Asked, level: float, seed: int, max_error: float | None, like: str | None
) -> tuple[list[Measured], Conclusion | None, dict[str, object]]:
    """Measure the rows of one file: all of them, then group by group, last what another tool would say."""
    loaded = load_all(source)
    preds = loaded.whole
    judged = make_lens(lens, preds) or default_lens(preds)
    estimators, select = asked.made(judged), loaded.select

    def estimates(rows: "tc.Predictions", by: str, group: str) -> list[Measured]:
        try:
            found = [
                tc.measure(rows, estimator=e, lens=judged, select=select, level=level, rng=seed) for e in estimators
            ]
        except InputError as error:
            raise InputError(f"group {group!r}: {error}" if group else str(error)) from error
        return [Measured(by, group, e.but(warnings=(*loaded.notes, *e.warnings))) for e in found]

    groups = [(by, group, rows) for by, parts in rows_by(preds, source).items() for group, rows in parts.items()]
    groups = [(by, group, rows) for by, group, rows in groups if select is None or select.mask(rows).any()]
    with working("measuring"):
        parts = [one for by, group, rows in groups for one in estimates(rows, by, group)]
        whole = estimates(preds, "", "") if not parts or (max_error is not None and len(estimators) == 1) else []
        foreign = [
            Measured(
                by,
                group,
                _foreign(select(rows) if select else rows, like, level, seed, (parts or whole)[0].estimate.lens),
            )
            for by, group, rows in (groups or [("", "", preds)] if like is not None else [])
        ]
    conclusion = None
    if len(estimators) == 1 and whole and (whole[0].estimate.interval is not None or max_error is not None):
        single = not judged.several and judged.shares(preds) is None and preds.judge is None
        profile = judged(loaded.preds) if single and not parts and loaded.preds.normalized else None
        conclusion = conclude(
            whole[0].estimate,
            tolerance=max_error,
            profile=None if profile is not None and profile.batch > 1 else profile,
            groups=_group_errors(parts) if max_error is not None else (),
            rows=loaded.counts,
            every_group=True,
        )
    return [*(parts or whole), *foreign], conclusion, {}


def _scan(
    source: Source, lens: str, asked: Asked, level: float, seed: int, max_error: float | None, like: str | None
) -> tuple[list[Measured], Conclusion | None, dict[str, object]]:
    """Measure sketches of one pass over files."""
    scan = scanned(source, lens)
    estimators = asked.made(scan.lens)
    scans = [scan] if source.combine or len(scan.by) < 2 else [marginal(scan, column) for column in scan.by]
    parts = [
        Measured(", ".join(one.by), group, e)
        for one in scans
        for group, e in scan_estimates(one, estimators, level, seed)
    ]
    conclusion = None
    if max_error is not None:
        whole = scan.measure(estimator=estimators[0], level=level, rng=seed)
        rows = RowCounts(scan.rows + scan.dropped, scan.rows, scan.dropped, scan.selection)
        groups = _group_errors(parts) if scan.by else ()
        conclusion = conclude(whole, tolerance=max_error, groups=groups, rows=rows, every_group=True)
    return parts, conclusion, {"scan": {"engine": scan.engine, "rows": scan.rows, "dropped": scan.dropped}}


def _group_errors(parts: Sequence[Measured]) -> list[GroupError]:
    several = len({part.by for part in parts}) > 1
    return [GroupError.of(f"{p.by} = {p.group}" if several else p.group, p.estimate) for p in parts]


def _foreign(preds: "tc.Predictions", tool: str | None, level: float, seed: int, ours: str) -> "tc.Estimate":
    """Measure as another tool does, with the reasons why it differs among the warnings; `ours` is what truecal judges."""
    from truecal.inference.conventions import like_for

    convention = like_for(preds, str(tool))
    estimate = convention.measure(preds, level=level, rng=seed)
    other = () if estimate.lens == ours else (f"it is about the {estimate.lens}, ours about the {ours}",)
    reasons = tuple(f"as {tool} computes it: {reason}" for reason in (*other, *convention.differs))
    return estimate.but(warnings=(*reasons, *estimate.warnings))


def rows_by(preds: "tc.Predictions", source: Source) -> "dict[str, dict[str, tc.Predictions]]":
    """Split rows by the values of each --by column, or with --combine by the combinations of values of all of them."""
    columns = [source.by] if source.combine and source.by else [(column,) for column in source.by]
    return {", ".join(several): preds_by(preds, several) for several in columns}


def preds_by(preds: "tc.Predictions", columns: Sequence[str]) -> "dict[str, tc.Predictions]":
    """Split rows by the value of a column, or by the combination of values of several, in their order."""
    parts = [categories(preds, column) for column in columns]
    combinations, member = np.unique(np.stack([index for _, index in parts], axis=1), axis=0, return_inverse=True)
    titles = [[words[i] for (words, _), i in zip(parts, row, strict=True)] for row in combinations.tolist()]
    joined = [", ".join(words) for words in titles]
    ambiguous = len(set(joined)) < len(joined)  # values with commas
    labels = [", ".join(map(repr, words)) for words in titles] if ambiguous else joined
    return {name: preds.take(member.ravel() == i) for i, name in enumerate(labels)}


def _finding(measured: Measured, source: str, max_error: float | None) -> Finding:
    e = measured.estimate
    word = names.word_of(type(e.estimator).__name__, names.ESTIMATORS)
    labels = {"source": source, "estimator": word, "norm": f"{e.norm:g}", "lens": e.lens}
    labels = {**labels, "group": measured.group} if measured.by else labels
    finding = Finding.of(measured.group or source, conclude(e, tolerance=max_error), f"{word}, {e.lens}", **labels)
    if e.sketch_error is None:
        return finding
    return replace(finding, numbers={**finding.numbers, "sketch_error": e.sketch_error})


def _text(measured: Sequence[Measured], conclusion: Conclusion | None) -> str:
    if len(measured) == 1:
        return _one(measured[0].estimate, conclusion)
    parts = [_many([m for m in measured if m.by == by], by) for by in dict.fromkeys(m.by for m in measured)]
    notes = [
        f"warning: {m.group and f'{m.group}: '}{type(m.estimate.estimator).__name__}: {text}"
        for m in measured
        for text in m.estimate.warnings
    ]
    notes += [_ALONE] if len({m.group for m in measured}) > 1 else []
    return "\n".join(["\n\n".join(parts), *dict.fromkeys(notes)])


def _one(e: "tc.Estimate", conclusion: Conclusion | None) -> str:
    """Write label and value, line by line."""
    low, high = (None, None) if e.interval is None else (float(e.interval.low), float(e.interval.high))
    spec = f".{digits.decimals(low, high)}f"
    lines = [(e.metric, f"{float(e.value):{spec}}")]
    if e.interval is not None:
        lines.append((f"{e.interval.level:.0%} interval", f"[{low:{spec}}, {high:{spec}}]"))
    if e.p_value is not None:
        lines.append(("p-value of 'is calibrated'", digits.p_text(float(e.p_value))))
    if abs(float(e.direction)) >= 0.0005:
        lines.append(
            ("on average", f"{names.tendency(e.lens, float(e.direction))} by {abs(float(e.direction)):{spec}}")
        )
    if conclusion is not None and conclusion.region is not None and conclusion.miscalibrated:
        lines.append(("largest error", conclusion.region_sentence.rstrip(".")))
    if e.chance is not None:
        lines.append(("if it were calibrated", f"{e.chance:{spec}}"))
    where = f", where {e.selection}" if e.selection else ""
    lines.append(("judged", f"{e.lens}, n = {e.n}{where}"))
    if e.sketch_error is not None:
        lines.append(("from a sketch", f"within {e.sketch_error:.1g} of the value of all rows"))
    bins = "" if e.bins is None else f", {e.bins.filled} bins"
    binning = e.to_dict()["estimator"]["options"].get("binning")
    lines.append(("estimator", f"{type(e.estimator).__name__}{bins}{'' if binning is None else f', {binning}'}"))
    lines += [("warning", text) for text in e.warnings]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def _many(measured: Sequence[Measured], by: str) -> str:
    """Write one line per group and estimator."""
    rows = []
    sketched = any(m.estimate.sketch_error is not None for m in measured)
    for m in measured:
        e = m.estimate
        name = names.word_of(type(e.estimator).__name__, names.ESTIMATORS)
        low, high = (None, None) if e.interval is None else (float(e.interval.low), float(e.interval.high))
        places = digits.decimals(low, high)
        numbers = [number(x, places) for x in (float(e.value), low, high)]
        facts = [digits.p_text(None if e.p_value is None else float(e.p_value)), str(e.n)]
        facts += ["-" if e.bins is None else str(e.bins.filled)]
        facts += [f"{e.sketch_error:.1g}"] if sketched else []
        norm = "max" if e.norm == float("inf") else f"{e.norm:g}"
        rows.append([*([m.group] if by else []), name, norm, *numbers, *facts])
    header = [*([by] if by else []), "estimator", "norm", "error", "low", "high", "p-value", "n", "bins"]
    return table([*header, *(["sketch error"] if sketched else [])], rows)


# ----------------------------------------------------------------------------------------------------
# Other numbers of the same rows


def _view(view: str, source: Source, lens: str, level: float, seed: int, thresholds: str | None) -> Result:
    """Answer with another table of the same rows; per group where it is asked for."""
    if is_scan(source):
        raise InputError(f"--{view} needs the rows of one file in memory; leave out --engine and further files")
    if source.by and view != "clinical":
        raise InputError(f"--by has no table with --{view}; use --select COLUMN=VALUE for one group")
    loaded = load_all(source)
    judged = make_lens(lens, loaded.preds)
    with working("measuring"):
        content, text, rows = _VIEWS[view](loaded, source, judged, level, seed, thresholds)
    dropped = f"\n{loaded.counts.sentence}" if loaded.counts.sentence else ""
    findings = [
        Finding(
            str(row.get("name", row.get("threshold", row.get("score", row.get("answered"))))),
            ", ".join(f"{key} {value:.4g}" for key, value in row.items() if isinstance(value, int | float)),
            {key: float(value) for key, value in row.items() if isinstance(value, int | float)},
        )
        for row in rows
    ]
    content = {"source": source.name, "level": level, **content, "rows": asdict(loaded.counts)}
    return Result(view, content, f"{text}{dropped}", findings, warnings=loaded.notes)


View = tuple[Mapping[str, object], str, Sequence[Mapping[str, Any]]]


def _clinical(loaded: Loaded, source: Source, lens: "Lens | None", level: float, seed: int, _: str | None) -> View:
    summary = tc.clinical.summary(loaded.preds, level=level, lens=lens, by=list(source.by) or None, rng=seed)
    groups = () if summary.sites is None else tuple(zip(summary.sites.names, summary.sites.results, strict=True))

    def record(cohort: Any) -> dict[str, object]:
        numbers = [{key: row[key] for key in ("name", "value", "low", "high")} for row in cohort.frame()]
        counts = {key: getattr(cohort, key) for key in ("rows", "events", "patients", "prevalence", "warnings")}
        return {**counts, "numbers": numbers}

    each = [{"group": name, **record(cohort)} for name, cohort in groups]
    return {"lens": summary.lens, "whole": record(summary), "groups": each}, str(summary), list(summary.frame())


def _net_benefit(
    loaded: Loaded, source: Source, lens: "Lens | None", level: float, seed: int, given: str | None
) -> View:
    preds = loaded.preds
    if given is None:
        rate = float(np.mean(preds.labels == 1))
        risks = np.unique(np.round([t for x in (0.25, 0.5, 1, 1.5, 2, 3, 4) if 0 < (t := x * rate) < 0.95], 3))
    else:
        risks = np.array(numbers_in(given, "--thresholds"))
    curve = tc.clinical.net_benefit(preds, risks, level=level, lens=lens, rng=seed)
    rows = list(curve.frame())
    return {"thresholds": rows}, str(curve), rows


def _abstention(loaded: Loaded, source: Source, lens: "Lens | None", level: float, seed: int, _: str | None) -> View:
    curve = tc.selective.risk_coverage(loaded.preds, lens=lens, level=level, rng=seed)
    rows = [row for row in curve.frame() if round(100 * row["answered"]) % 10 == 0]
    lines = [
        [f"{r['answered']:.0%}", f"{r['threshold']:.4f}", f"{r['risk']:.2%}", f"{r['low']:.2%} to {r['high']:.2%}"]
        for r in rows
    ]
    area = digits.with_interval(curve.area.value, float(curve.area.interval.low), float(curve.area.interval.high))
    text = table(["answered", "from confidence", "wrong answers", f"{level:.0%} interval"], lines)
    text += (
        f"\narea under the curve {area}; a perfect order of the same answers would save {curve.area.excess:.4f} of it"
    )
    return {"area": curve.area.value, "excess": curve.area.excess, "curve": rows}, text, rows


def _values(loaded: Loaded, source: Source, lens: "Lens | None", level: float, seed: int, _: str | None) -> View:
    judged = lens or default_lens(loaded.preds)
    if judged.several or judged.shares(loaded.preds) is not None:
        raise InputError("--values shows one probability per row; use --lens top-label, positive or class=NAME")
    regions = stated_values(judged(loaded.preds), level)
    if not regions:
        raise InputError("--values shows up to 20 distinct scores, and here are more; see the bins of truecal report")
    lines = [
        [
            digits.percent(r.mean_score),
            str(r.rows),
            str(r.outcomes),
            digits.percent(r.frequency),
            f"{digits.percent(r.low)} to {digits.percent(r.high)}",
            "" if r.low <= r.mean_score <= r.high else "off",
        ]
        for r in regions
    ]
    happened = "right" if names.judges_answers(judged.describe(loaded.preds)) else "happened"
    text = table(["score", "rows", happened, "frequency", f"{level:.0%} interval", ""], lines)
    rows = [{"score": r.mean_score, **asdict(r)} for r in regions]
    return {"lens": judged.describe(loaded.preds), "values": rows}, text, rows


_VIEWS: dict[str, Callable[..., View]] = {
    "clinical": _clinical,
    "net-benefit": _net_benefit,
    "abstention": _abstention,
    "values": _values,
}


# ----------------------------------------------------------------------------------------------------
# `truecal verify`


@click.command()
@click.option(
    "--max-error", "--threshold", type=Share(0, 1), default=0.02, show_default=True, help="The error to be promised."
)
@click.option(
    "--level",
    type=Share(0.5, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How sure the promise is to be.",
)
@click.option(
    "--assume-smooth", is_flag=True, help="Accept that the calibration curve is smooth, for continuous outputs."
)
@lens_option
@answers
@scan_options
def verify(source: Source, max_error: float, level: float, assume_smooth: bool, lens: str) -> Result:
    """Say whether the root-mean-square calibration error of FILE can be promised to be below --max-error.

    FILE may be a folder, a pattern, several files or a saved sketch, which are read in one pass and in bounded memory.

    Exit 0 if it is promised (or supported, with --assume-smooth), 1 if it is not (the error is larger, or the data are too few
    to tell), 2 if the input cannot be used. The last line says PASS or FAIL, why, and what would change it.
    """
    data = sketch_of(source, lens) if is_sketched(source) else load(source)
    judged = None if isinstance(data, tc.Sketch) else make_lens(lens, data)
    with working("verifying"):
        verification = tc.verify(data, threshold=max_error, level=level, lens=judged)
    conclusion = verification.conclusion(assume_smooth=assume_smooth)
    finding = Finding.of(source.name, conclusion, source=source.name, lens=verification.lens)
    content = {
        "source": source.name,
        "passed": conclusion.passed,
        **asdict(verification),
        "conclusion": conclusion.to_dict(),
    }
    text = str(verification)
    return Result(
        "verify", content, text, [finding], conclusion.gate, verification.warnings, conclusion.passed is False
    )
