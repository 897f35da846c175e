"""`truecal measure`, `verify`, `decision`, `audit` and `likert`: what there is to know about one set of predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

import truecal as tc
from truecal import digits, names, parallel
from truecal.cli.command import (
    ALL_FORMATS,
    Count,
    Fraction,
    NumberRange,
    Numbers,
    Probability,
    Seed,
    Several,
    WriteTo,
    command,
)
from truecal.cli.estimators import EstimatorOptions, Scale, classes_by_word
from truecal.cli.input import Files, GroupedFiles, Input, OneFile, PlainFile, grouped, load
from truecal.cli.output import Reply, Statement, number, save_figure, table, working
from truecal.cli.scan import group_by_one, is_sketched, read_sketch, scan_files
from truecal.errors import InputError
from truecal.inference.conclusion import Conclusion, GroupError, RowCounts, conclude, stated_values
from truecal.lenses.one_probability import default_lens
from truecal.predictions.selection import group_rows

if TYPE_CHECKING:
    from truecal.lenses.lens import Lens

_ALONE = "every group is judged by itself, and some of many look wrong by chance: truecal report judges them together"
_ONE_LABEL = (
    "every group of {} has one label, and given its label even a calibrated model is off: --select label=NAME compares the rows of "
    "a label with a calibrated model"
)
_VIEWS = ("values", "clinical", "net_benefit", "abstention")
_LEFT_OUT_OF_JSON = ("curve", "vector_bins", "settings")
_OPTIONAL = ("sketch_error", "sketch_bound", "chance", "selection")


@dataclass(frozen=True)
class GroupEstimate:
    """An estimate with the column and value of its group, empty for all rows."""

    by: str
    group: str
    estimate: "tc.Estimate"

    def record(self) -> dict[str, object]:
        """Return the estimate as `--json` prints it."""
        record = {k: v for k, v in self.estimate.to_dict().items() if k not in _LEFT_OUT_OF_JSON}
        record["norm"] = float(self.estimate.norm) if self.estimate.norm < float("inf") else "inf"
        record = {k: v for k, v in record.items() if v not in (None, "") or k not in _OPTIONAL}
        return {**record, "by": self.by, "group": self.group} if self.by else record

    @property
    def estimator_word(self) -> str:
        """Name of the estimator on the command line."""
        return names.word_of(type(self.estimate.estimator).__name__, names.ESTIMATORS)

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Limits of the interval, None where there is none."""
        interval = self.estimate.interval
        return (None, None) if interval is None else (float(interval.low), float(interval.high))


# ----------------------------------------------------------------------------------------------------
# `truecal measure`


@command(formats=ALL_FORMATS)
def measure(
    source: GroupedFiles,
    options: EstimatorOptions,
    *,
    max_error: Probability | None = None,
    like: str | None = None,
    values: bool = False,
    clinical: bool = False,
    net_benefit: bool = False,
    abstention: bool = False,
    thresholds: Numbers | None = None,
    combine: bool = False,
) -> Reply:
    """Measure the calibration error of the predictions in FILE (csv, jsonl, parquet, npz, or - for standard input).

    A pattern such as 'logs/*.parquet', a folder, or several files are scanned in one pass and in bounded memory; the answer then
    says how far it can be from that of all rows at once. --engine scans a single file too.

    With --max-error this is a gate: it passes (exit 0) only if the upper end of the interval is at most that, so that too little
    data fails as well as too large an error (exit 1). With --by, every group must pass.

    --max-error E       Gate: exit 1 unless the error is below this, at --level.
    --like TOOL         Also the number of another tool, such as torchmetrics, and why it differs.
    --values            How often the outcome happened at each stated score.
    --clinical          O/E, intercept, slope, ICI, c-statistic, Brier score.
    --net-benefit       Net benefit of acting at --thresholds.
    --abstention        Share of wrong answers if the least confident are left out.
    --thresholds T,...  Scores from which one acts, with --net-benefit.
    --combine           With several --by: every combination of their values instead.
    """
    views = [name for name, chosen in zip(_VIEWS, (values, clinical, net_benefit, abstention), strict=True) if chosen]
    if thresholds is not None and not net_benefit:
        raise InputError(
            "--thresholds needs --net-benefit; truecal decision says what miscalibration costs at a threshold"
        )
    if views:
        flag = f"--{views[-1].replace('_', '-')}"
        if max_error is not None or like is not None or len(views) > 1:
            raise InputError(f"{flag} cannot be combined with --max-error, --like or another table")
        return _view(views[0], flag, source, options, thresholds)
    if options.estimator == "all" and max_error is not None:
        raise InputError("--max-error judges one estimator; leave out --estimator all")
    if like is not None and (max_error is not None or source.scans):
        raise InputError("--like compares with another tool, row by row; leave out --max-error, and give one file")
    measured = (
        _measure_scan(source, options, max_error, combine)
        if source.scans
        else _measure_rows(source, options, max_error, combine, like)
    )
    conclusion = measured.conclusion
    content: dict[str, object] = {"source": source.name, "level": options.level}
    content |= {"results": [each.record() for each in measured.estimates], **measured.facts}
    if conclusion is not None and max_error is not None:
        worst = {} if conclusion.worst_group is None else {"worst": conclusion.worst_group.name}
        content["gate"] = {"max_error": max_error, "upper": conclusion.upper, "passed": conclusion.passed, **worst}
    return Reply(
        "measure",
        content,
        _text(measured),
        [_statement(each, source.name, max_error) for each in measured.estimates],
        conclusion,
        list(dict.fromkeys(note for each in measured.estimates for note in each.estimate.warnings)),
    )


@dataclass(frozen=True)
class Measured:
    """Estimates by group and estimator, the conclusion about all rows, further facts, and a remark about the groups."""

    estimates: list[GroupEstimate]
    conclusion: Conclusion | None
    facts: Mapping[str, object]
    remark: str = _ALONE


def _measure_rows(
    source: Input, options: EstimatorOptions, max_error: float | None, combine: bool, like: str | None
) -> Measured:
    """Measure the rows of one file: all of them or group by group, then as another tool does."""
    loaded = load(source)
    whole, select = loaded.whole, loaded.select
    lens = loaded.lens or default_lens(whole)
    estimators = options.estimators(lens)

    def estimates(rows: "tc.Predictions", by: str, group: str) -> list[GroupEstimate]:
        settings: dict[str, Any] = {"lens": lens, "select": select, "level": options.level, "rng": options.seed}
        try:
            each = [tc.measure(rows, estimator=e, **settings) for e in estimators]
        except InputError as error:
            raise InputError(f"group {group!r}: {error}" if group else str(error)) from error
        return [GroupEstimate(by, group, replace(e, warnings=(*loaded.notes, *e.warnings))) for e in each]

    columns = [source.by] if combine and source.by else [(column,) for column in source.by]
    groups = [(", ".join(each), *part) for each in columns for part in split_rows(whole, each).items()]
    groups = [(by, group, rows) for by, group, rows in groups if select is None or select.mask(rows).any()]
    one_label = bool(groups) and all((rows.labels == rows.labels[0]).all() for *_, rows in groups)
    with working("measuring"):
        parts = [one for by, group, rows in groups for one in estimates(rows, by, group)]
        one_gate = max_error is not None and len(estimators) == 1
        overall = estimates(whole, "", "") if not parts or one_gate else []
        others = [
            GroupEstimate(
                by, group, _measure_like(select(rows) if select else rows, str(like), options, parts or overall)
            )
            for by, group, rows in (groups or [("", "", whole)] if like is not None else [])
        ]
    conclusion = None
    if len(estimators) == 1 and overall and (overall[0].estimate.interval is not None or max_error is not None):
        single = not lens.several and lens.shares(whole) is None and whole.judge is None
        profile = lens(loaded.preds) if single and not parts and loaded.preds.normalized else None
        conclusion = conclude(
            overall[0].estimate,
            tolerance=max_error,
            profile=None if profile is not None and profile.batch > 1 else profile,
            groups=_group_errors(parts) if max_error is not None else (),
            rows=loaded.counts,
            every_group=True,
        )
    remark = _ONE_LABEL.format(" and ".join(source.by)) if one_label else _ALONE
    return Measured([*(parts or overall), *others], conclusion, {}, remark)


def _measure_scan(source: Input, options: EstimatorOptions, max_error: float | None, combine: bool) -> Measured:
    """Measure sketches of one pass over files."""
    scan = scan_files(source)
    estimators = options.estimators(scan.lens)
    scans = [scan] if combine or len(scan.by) < 2 else [group_by_one(scan, column) for column in scan.by]
    parts: list[GroupEstimate] = []
    with working("measuring"):
        for one in scans:
            each = [one.groups(estimator=e, level=options.level, rng=options.seed) for e in estimators]
            by = ", ".join(one.by)
            parts += [GroupEstimate(by, ", ".join(map(str, g)), answers[g]) for g in each[0] for answers in each]
    conclusion = None
    if max_error is not None:
        overall = scan.measure(estimator=estimators[0], level=options.level, rng=options.seed)
        rows = RowCounts(scan.rows + scan.dropped, scan.rows, scan.dropped, scan.selection)
        groups = _group_errors(parts) if scan.by else ()
        conclusion = conclude(overall, tolerance=max_error, groups=groups, rows=rows, every_group=True)
    return Measured(parts, conclusion, {"scan": {"engine": scan.engine, "rows": scan.rows, "dropped": scan.dropped}})


def _group_errors(parts: Sequence[GroupEstimate]) -> list[GroupError]:
    """Return the errors of groups by name, with the column where there are several."""
    several = len({part.by for part in parts}) > 1
    return [GroupError.of(f"{p.by} = {p.group}" if several else p.group, p.estimate) for p in parts]


def _measure_like(
    preds: "tc.Predictions", tool: str, options: EstimatorOptions, ours: Sequence[GroupEstimate]
) -> "tc.Estimate":
    """Measure as another tool does, with the reasons why it differs from `ours` among the warnings."""
    from truecal.inference.conventions import like_for

    convention = like_for(preds, tool)
    estimate = convention.measure(preds, level=options.level, rng=options.seed)
    lens = ours[0].estimate.lens
    other = () if estimate.lens == lens else (f"it is about the {estimate.lens}, ours about the {lens}",)
    reasons = tuple(f"as {tool} computes it: {reason}" for reason in (*other, *convention.differs))
    return replace(estimate, warnings=(*reasons, *estimate.warnings))


def split_rows(preds: "tc.Predictions", columns: Sequence[str]) -> "dict[str, tc.Predictions]":
    """Split rows by the value of a column, or by the combination of values of several, in their order."""
    groups = group_rows(preds, columns)
    return {name: preds.take(rows) for name, rows in zip(groups.names, groups.rows(), strict=True)}


def _statement(part: GroupEstimate, source: str, max_error: float | None) -> Statement:
    """Make the statement about one estimate, with its gate."""
    e, word = part.estimate, part.estimator_word
    labels = {"source": source, "estimator": word, "norm": f"{e.norm:g}", "lens": e.lens}
    labels = {**labels, "group": part.group} if part.by else labels
    statement = Statement.of(part.group or source, conclude(e, tolerance=max_error), f"{word}, {e.lens}", **labels)
    if e.sketch_error is None:
        return statement
    return replace(statement, numbers={**statement.numbers, "sketch_error": e.sketch_error})


def _text(measured: Measured) -> str:
    """Write one estimate in full, or several as tables with notes."""
    estimates = measured.estimates
    if len(estimates) == 1:
        return _one_estimate(estimates[0], measured.conclusion)
    parts = [estimates_table([m for m in estimates if m.by == by]) for by in dict.fromkeys(m.by for m in estimates)]
    notes = [
        f"warning: {m.group and f'{m.group}: '}{type(m.estimate.estimator).__name__}: {text}"
        for m in estimates
        for text in m.estimate.warnings
    ]
    notes += [measured.remark] if len({m.group for m in estimates}) > 1 else []
    return "\n".join(["\n\n".join(parts), *dict.fromkeys(notes)])


def _one_estimate(part: GroupEstimate, conclusion: Conclusion | None) -> str:
    """Write label and value, line by line."""
    e, (low, high) = part.estimate, part.limits
    spec, direction = f".{digits.decimals(low, high)}f", float(e.direction)
    lines = {e.metric: f"{float(e.value):{spec}}"}
    if e.interval is not None:
        lines[f"{e.interval.level:.0%} interval"] = f"[{low:{spec}}, {high:{spec}}]"
    if e.p_value is not None:
        lines["p-value of 'is calibrated'"] = digits.p_text(float(e.p_value))
    if abs(direction) >= 0.0005:
        lines["on average"] = f"{names.tendency(e.lens, direction)} by {abs(direction):{spec}}"
    if conclusion is not None and conclusion.region is not None and conclusion.miscalibrated:
        lines["largest error"] = conclusion.region.sentence(conclusion.lens).rstrip(".")
    if e.chance is not None:
        lines["if it were calibrated"] = f"{e.chance:{spec}}"
    if isinstance(e, tc.inference.JudgedEstimate):
        lines["trusted labels"] = f"{e.trusted}; with the judge, as informative as {e.worth:.0f} labels"
        lines["outcome rate"] = digits.with_interval(*e.accuracy)
    lines["judged"] = f"{e.lens}, n = {e.n}{e.selection and f', where {e.selection}'}"
    if e.sketch_error is not None:
        lines["from a sketch"] = f"within {e.sketch_error:.1g} of the value of all rows"
    binning = e.to_dict()["estimator"]["options"].get("binning")
    bins = [] if e.bins is None else [f"{e.bins.filled} bins"]
    lines["estimator"] = ", ".join([type(e.estimator).__name__, *bins, *([] if binning is None else [str(binning)])])
    width = max(map(len, lines))
    return "\n".join(
        f"{name:<{width}}  {value}" for name, value in [*lines.items(), *(("warning", w) for w in e.warnings)]
    )


def estimates_table(measured: Sequence[GroupEstimate]) -> str:
    """Write one line per group and estimator."""
    by, rows = measured[0].by, []
    sketched = any(m.estimate.sketch_error is not None for m in measured)
    for m in measured:
        e, decimals = m.estimate, digits.decimals(*m.limits)
        norm = "max" if e.norm == float("inf") else f"{e.norm:g}"
        numbers = [number(x, decimals) for x in (float(e.value), *m.limits)]
        p_value = digits.p_text(None if e.p_value is None else float(e.p_value))
        bins = "-" if e.bins is None else str(e.bins.filled)
        error = [f"{e.sketch_error:.1g}"] if sketched else []
        rows.append([*([m.group] if by else []), m.estimator_word, norm, *numbers, p_value, str(e.n), bins, *error])
    header = [*([by] if by else []), "estimator", "norm", "error", "low", "high", "p-value", "n", "bins"]
    return table([*header, *(["sketch error"] if sketched else [])], rows)


# ----------------------------------------------------------------------------------------------------
# Other numbers of the same rows

View = tuple[Mapping[str, object], str, Sequence[Mapping[str, Any]]]  # content, text and rows


def _view(view: str, flag: str, source: Input, options: EstimatorOptions, thresholds: list[float] | None) -> Reply:
    """Reply with another table of the same rows."""
    if source.scans:
        raise InputError(f"{flag} needs the rows of one file in memory; leave out --engine and further files")
    if source.by and view != "clinical":
        raise InputError(f"--by has no table with {flag}; use --select COLUMN=VALUE for one group")
    loaded = load(source)
    preds, lens, level = loaded.preds, loaded.lens, options.level
    with working("measuring"):
        if view == "values":
            content, text, rows = _values(preds, lens or default_lens(preds), level)
        elif view == "abstention":
            content, text, rows = _abstention(
                tc.selective.risk_coverage(preds, lens=lens, level=level, rng=options.seed)
            )
        elif view == "clinical":
            by = list(source.by) or None
            content, text, rows = _clinical(tc.clinical.summary(preds, level=level, lens=lens, by=by, rng=options.seed))
        else:
            risks = thresholds or _around_prevalence(preds)
            curve = tc.clinical.net_benefit(preds, risks, level=level, lens=lens)
            rows = list(curve.frame())
            content, text = {"thresholds": rows}, str(curve)
    dropped = f"\n{loaded.counts.sentence}" if loaded.counts.sentence else ""
    statements = []
    for row in rows:
        numbers = {key: float(value) for key, value in row.items() if isinstance(value, int | float)}
        name = next(str(row[key]) for key in ("name", "threshold", "score", "answered") if key in row)
        statements.append(Statement(name, ", ".join(f"{key} {x:.4g}" for key, x in numbers.items()), numbers))
    content = {"source": source.name, "level": level, **content, "rows": asdict(loaded.counts)}
    return Reply(view.replace("_", "-"), content, f"{text}{dropped}", statements, warnings=loaded.notes)


def _clinical(summary: Any) -> View:
    """Return record, text and rows of a clinical summary."""
    groups = () if summary.sites is None else tuple(zip(summary.sites.names, summary.sites.results, strict=True))

    def record(cohort: Any) -> dict[str, object]:
        numbers = [{key: row[key] for key in ("name", "value", "low", "high")} for row in cohort.frame()]
        counts = {key: getattr(cohort, key) for key in ("rows", "events", "patients", "prevalence", "warnings")}
        return {**counts, "numbers": numbers}

    each = [{"group": name, **record(cohort)} for name, cohort in groups]
    return {"lens": summary.lens, "whole": record(summary), "groups": each}, str(summary), list(summary.frame())


def _around_prevalence(preds: "tc.Predictions") -> list[float]:
    """Return thresholds from a quarter to four times the prevalence, below 0.95."""
    rate = float(np.mean(preds.labels == 1))
    risks = [round(factor * rate, 3) for factor in (0.25, 0.5, 1, 1.5, 2, 3, 4)]
    return sorted({risk for risk in risks if 0 < risk < 0.95})


def _abstention(curve: Any) -> View:
    """Return record, text and rows of a risk-coverage curve at every tenth of the rows."""
    rows = [row for row in curve.frame() if round(100 * row["answered"]) % 10 == 0]
    lines = [
        [
            f"{r['answered']:.0%}",
            digits.percent(r["threshold"]),
            f"{r['risk']:.1%}",
            f"{r['low']:.1%} to {r['high']:.1%}",
        ]
        for r in rows
    ]
    area, interval = curve.area, curve.area.interval
    size = digits.with_interval(area.value, float(interval.low), float(interval.high))
    text = table(["answered", "from confidence", "wrong answers", f"{interval.level:.0%} interval"], lines)
    text += f"\narea under the risk-coverage curve {size}; a perfect ranking of these answers would lower it by {area.excess:.4f}"
    return {"area": area.value, "excess": area.excess, "curve": rows}, text, rows


def _values(preds: "tc.Predictions", lens: "Lens", level: float) -> View:
    """Return record, text and rows of every distinct score with its frequency; refuse more than 20."""
    if lens.several or lens.shares(preds) is not None:
        raise InputError("--values shows one probability per row; use --lens top-label, positive or class=NAME")
    regions = stated_values(lens(preds), level)
    if not regions:
        raise InputError("--values shows up to 20 distinct scores, and here are more; see the bins of truecal report")
    lines = []
    for r in regions:
        score, frequency, low, high = map(digits.percent, (r.mean_score, r.frequency, r.low, r.high))
        off = "" if r.low <= r.mean_score <= r.high else "off"
        lines.append([score, str(r.rows), str(r.outcomes), frequency, f"{low} to {high}", off])
    description = lens.describe(preds)
    happened = "right" if names.judges_answers(description) else "happened"
    text = table(["score", "rows", happened, "frequency", f"{level:.0%} interval", ""], lines)
    rows = [{"score": r.mean_score, **asdict(r)} for r in regions]
    return {"lens": description, "values": rows}, text, rows


# ----------------------------------------------------------------------------------------------------
# `truecal verify` and `truecal decision`


@command(formats=ALL_FORMATS)
def verify(
    source: Files,
    *,
    max_error: Probability = 0.02,
    level: Annotated[float, NumberRange(0.5, 1, min_open=True, max_open=True)] = 0.95,
    assume_smooth: bool = False,
) -> Reply:
    """Test whether the root-mean-square calibration error of FILE is below --max-error.

    FILE may be a folder, a pattern, several files or a saved sketch, which are read in one pass and in bounded memory.

    Exit 0 if it is (or if it is under the assumption that --assume-smooth accepts), 1 if it is larger or the data are too few to
    tell, 2 if the input cannot be used. The last line says PASS or FAIL, why, and what would change it.

    --max-error, --threshold E  The error that is allowed.
    --level P                   Confidence of the statement.
    --assume-smooth             Accept that the calibration curve is smooth, for continuous outputs.
    """
    loaded = None if is_sketched(source) else load(source)
    data, lens = (read_sketch(source), None) if loaded is None else (loaded.preds, loaded.lens)
    notes = () if loaded is None else loaded.notes
    with working("verifying"):
        verification = tc.verify(data, threshold=max_error, level=level, lens=lens)
    conclusion = verification.conclusion(assume_smooth=assume_smooth)
    statement = Statement.of(source.name, conclusion, source=source.name, lens=verification.lens)
    content = {"source": source.name, "passed": conclusion.passed, **asdict(verification)}
    text = "\n".join([str(verification), *(f"  warning: {note}" for note in notes)])
    content["warnings"] = warnings = (*verification.warnings, *notes)
    return Reply("verify", content, text, [statement], conclusion, warnings)


@command(formats=ALL_FORMATS)
def decision(
    source: OneFile,
    *,
    threshold: tuple[Fraction, ...] = (),
    costs: tuple[float, float] | None = None,
    level: Fraction = 0.95,
    seed: Seed = 0,
) -> Reply:
    """Estimate what miscalibration costs somebody who acts on the scores in FILE from --threshold on.

    A false alarm costs t and a missed event 1 - t, or what --costs says. Without a threshold: the largest loss of all of them.

    --threshold T         Score from which a case is acted on; may be repeated.  [default: 0.01 to 0.99]
    --costs ALARM MISSED  Costs of a false alarm and of a missed event, in place of --threshold.
    """
    loaded = load(source)
    with working("redrawing outcomes"):
        loss = tc.decision_loss(loaded.preds, threshold or None, costs, lens=loaded.lens, level=level, rng=seed)
    assert isinstance(loss, tc.inference.DecisionLoss)
    labels = {"source": source.name, "lens": loss.lens}
    statements = []
    for one in [loss.at(t) for t in loss.thresholds] if threshold or costs else [loss.maximum]:
        numbers = {"threshold": one.threshold, "loss": one.value, "low": one.low, "high": one.high}
        statements.append(Statement(f"{source.name} at {one.threshold:g}", str(one), numbers, labels=labels))
    return Reply("decision", {"source": source.name, **loss.to_dict()}, str(loss), statements)


# ----------------------------------------------------------------------------------------------------
# `truecal audit` and `truecal likert`


@command()
def audit(
    source: Annotated[Files, grouped("A column to search; may be repeated.  [default: all other columns]")],
    *,
    depth: Count = 3,
    min_rows: Several | None = None,
    tolerance: Fraction | None = None,
    level: Fraction = 0.95,
) -> Reply:
    """Search the predictions in FILE for segments whose scores are wrong by more than the search itself explains.

    All intersections of up to --depth columns are tested, as a whole and in regions of the scores; the chance that any calibrated
    segment is listed is at most 1 - LEVEL. A pattern, a folder or several files are scanned once, grouped by the --by columns.

    Exit 0 if no segment is beyond the tolerance, 1 if one is, 2 if the input cannot be used.

    --depth N      How many columns a segment may combine.
    --min-rows N   Smaller segments are not judged.  [default: 50, or rows / 1000]
    --tolerance E  Gate: exit 1 only if a segment is off by more than this.  [default: if any is off by more than chance]
    """
    data: Any
    options: dict[str, Any] = {}
    if source.scans:
        if not source.by:
            raise InputError("name the columns to group by while scanning: --by COLUMN, repeated")
        data = scan_files(source)
    else:
        loaded = load(source)
        data, options = loaded.preds, {"by": source.by or None, "lens": loaded.lens}
    with parallel.progress_bar("auditing") as progress:
        result = tc.audit(
            data, depth=depth, level=level, min_rows=min_rows, tolerance=tolerance, progress=progress, **options
        )
    content = {"source": source.name, **result.to_dict(), "gate": result.gate}
    return Reply("audit", content, f"{result}\n{result.gate}", failed=not result.passed)


@command()
def likert(
    source: PlainFile,
    *,
    scale: Scale | None = None,
    of: str | None = None,
    figure: WriteTo | None = None,
    level: Fraction = 0.95,
    seed: Seed = 0,
) -> Reply:
    """Judge the outputs in FILE as people see them: as words of a scale.

    A word holds when, among the outputs it covers, the event happens with a frequency inside the limits of the word.

    Exit 0 if no word is shown to be wrong, 1 if the frequency of one lies outside its limits (at --level), 2 if the input cannot
    be used.

    --scale, --bands WORD=LOW:HIGH,...  Your words and their limits, e.g. 'unsure=0:0.6,sure=0.6:1'.
                                        [default: low=0:0.33,medium=0.33:0.66,high=0.66:1]
    --of CLASS                          The class whose probability is shown.  [default: the predicted one]
    --figure FILE                       Also draw it (png, svg, pdf).
    """
    from truecal.groups import answer_scales

    preds = load(source).preds
    classes = classes_by_word(preds)
    if of is not None and of not in classes:
        raise InputError(f"there is no class {of!r} for --of; the classes are {', '.join(list(classes)[:10])}")
    with working("judging words"):
        report = tc.likert(
            preds, scale or answer_scales.SCALE, class_name=None if of is None else classes[of], level=level, rng=seed
        )
    if figure is not None:
        save_figure(tc.plot.LikertDisplay.from_report(report).figure_, figure)
    outside = f"\n{report.outside} outputs are covered by no word" if report.outside else ""
    content = {"source": source.name, **report.to_dict(), "passed": report.passed, "gate": report.gate}
    return Reply("likert", content, f"{report}{outside}\n{report.gate}", failed=not report.passed)
