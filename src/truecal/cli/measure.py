"""`truecal measure`: the calibration error of predictions, its gate, and other numbers of the same rows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import truecal as tc
from truecal import digits, names
from truecal.cli.command import ALL_FORMATS, Numbers, Probability, command
from truecal.cli.input import EstimatorOptions, GroupedFiles, Loaded, load
from truecal.cli.output import Reply, Statement, working
from truecal.cli.scan import group_by, scan_files
from truecal.errors import InputError
from truecal.inference.conclusion import GroupError, RowCounts, conclude, stated_values
from truecal.inference.conventions import like_for
from truecal.lenses.one_probability import default_lens
from truecal.predictions.selection import group_rows
from truecal.table import Frame

_ALONE = "groups are tested one by one, and some of many differ by chance; truecal report adjusts for their number"
_ONE_LABEL = (
    "every group of {} has one label, and given its label even a calibrated model is off; --select label=NAME compares the rows of "
    "a label with those of a calibrated model"
)
_LEFT_OUT_OF_JSON = ("curve", "vector_bins", "settings")
_OPTIONAL = ("sketch_error", "sketch_bound", "chance", "selection")
Data = Loaded | tc.engines.Scan


@dataclass(frozen=True)
class GroupEstimate:
    """An estimate of a group: columns `by` and value `group` ("" for all rows), and `tool` if another tool defines it."""

    by: str
    group: str
    estimate: "tc.Estimate"
    tool: str = ""

    def record(self) -> dict[str, object]:
        """Return the estimate as `--json` prints it, with the group if there is one.

        It is `Estimate.to_dict` without _LEFT_OUT_OF_JSON, and without those of _OPTIONAL that are None or ""; an infinite norm
        is "inf". With a grouping "by" and "group" are added.
        """
        record = {k: v for k, v in self.estimate.to_dict().items() if k not in _LEFT_OUT_OF_JSON}
        record["norm"] = float(self.estimate.norm) if self.estimate.norm < float("inf") else "inf"
        record = {k: v for k, v in record.items() if v not in (None, "") or k not in _OPTIONAL}
        return {**record, "by": self.by, "group": self.group} if self.by else record

    @property
    def estimator_word(self) -> str:
        """Name of the estimator on the command line, or of the other tool."""
        return self.tool or names.word_of(type(self.estimate.estimator).__name__, names.ESTIMATORS)

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Lower and upper limit of the interval; (None, None) without one."""
        interval = self.estimate.interval
        return (None, None) if interval is None else (float(interval.low), float(interval.high))

    def cells(self) -> dict[str, object]:
        """Return the row of the table of estimates: numbers with the decimals that the interval allows.

        Keys are the columns of the grouping (if any), estimator, norm, error, low, high, p-value, n, bins and, of a sketch,
        sketch error; "-" stands for what there is not.
        """
        e, spec = self.estimate, f".{digits.decimals(*self.limits)}f"
        low, high = ("-" if limit is None else f"{limit:{spec}}" for limit in self.limits)
        cells = {"estimator": self.estimator_word, "norm": "max" if e.norm == float("inf") else f"{e.norm:g}"}
        cells |= {"error": f"{float(e.value):{spec}}", "low": low, "high": high}
        cells |= {"p-value": digits.p_text(None if e.p_value is None else float(e.p_value)), "n": str(e.n)}
        cells |= {"bins": "-" if e.bins is None else str(e.bins.filled)}
        cells |= {} if e.sketch_error is None else {"sketch error": f"{e.sketch_error:.1g}"}
        return {self.by: self.group, **cells} if self.by else {**cells}

    def statement(self, source: str, max_error: float | None) -> Statement:
        """Return the statement about this estimate, with the gate `max_error` unless that is None; `source` names the input."""
        e, word = self.estimate, self.estimator_word
        labels = {"source": source, "estimator": word, "norm": f"{e.norm:g}", "lens": e.lens}
        labels |= {"group": self.group} if self.by else {}
        return Statement.of(self.group or source, conclude(e, tolerance=max_error), f"{word}, {e.lens}", **labels)


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
    --net-benefit       Net benefit of acting on the scores, at thresholds around the share of events.
    --abstention        Share of wrong answers if the least confident are left out.
    --thresholds T,...  Net benefit of acting from these scores on; truecal decision says what miscalibration costs there.
    --combine           With several --by: every combination of their values instead.
    """
    flags = {"--values": values, "--clinical": clinical, "--abstention": abstention}
    flags["--net-benefit"] = net_benefit or thresholds is not None
    tables = [flag for flag, chosen in flags.items() if chosen]
    if tables and (max_error is not None or like is not None or len(tables) > 1):
        raise InputError(f"{tables[-1]} cannot be combined with --max-error, --like or another table")
    if like is not None and (max_error is not None or source.by or source.scans):
        raise InputError(
            "--like compares all rows with another tool, row by row; leave out --max-error and --by, and give one file"
        )
    if tables:
        return _other_table_reply(tables[0], source, options, thresholds)
    if options.estimator == "all" and max_error is not None:
        raise InputError("--max-error judges one estimator; leave out --estimator all")
    data = scan_files(source) if source.scans else load(source)
    lens = data.lens if isinstance(data, tc.engines.Scan) else data.lens or default_lens(data.whole)
    estimators = options.estimators(lens)
    is_single = len(estimators) == 1
    columns = [source.by] if combine and source.by else [(column,) for column in source.by]
    with working("measuring"):
        measured = [e for group_columns in columns for e in _measure_groups(data, group_columns, estimators, options)]
        overall = []
        if not columns or (is_single and max_error is not None):
            overall = _measure_groups(data, (), estimators, options)
    conclusion = None
    if is_single and overall and (overall[0].estimate.interval is not None or max_error is not None):
        conclusion = _conclude(data, overall[0].estimate, max_error, measured)
    measured = measured or overall
    if like is not None and isinstance(data, Loaded):
        measured = [*measured, _estimate_of_tool(data, like, options, measured[0])]
    content: dict[str, object] = {"source": source.name, "level": options.level}
    if isinstance(data, tc.engines.Scan):
        content["scan"] = {"engine": data.engine, "rows": data.rows, "dropped": data.dropped}
    return Reply(
        "measure",
        {**content, "results": [part.record() for part in measured]},
        _estimate_text(measured[0], conclusion) if len(measured) == 1 else _tables_text(measured, data, columns),
        [part.statement(source.name, max_error) for part in measured],
        conclusion,
        list(dict.fromkeys(note for part in measured for note in part.estimate.warnings)),
    )


def _measure_groups(
    data: Data, columns: Sequence[str], estimators: "Sequence[tc.estimators.Estimator]", options: EstimatorOptions
) -> list[GroupEstimate]:
    """Measure each combination of values of `columns` by each estimator; without columns all rows, as group ""."""
    by, common = ", ".join(columns), dict[str, Any](level=options.level, rng=options.seed)
    if isinstance(data, tc.engines.Scan):
        scan = group_by(data, columns)
        by_estimator = [scan.groups(estimator=estimator, **common) for estimator in estimators]
        return [
            GroupEstimate(by, name, estimates_by_group[group])
            for group, name in scan.names.items()
            for estimates_by_group in by_estimator
        ]
    context: dict[str, Any] = {**common, "lens": data.lens or default_lens(data.whole), "select": data.select}
    estimates = []
    for group, rows in _selected_groups(data, columns).items():
        for estimator in estimators:
            try:
                estimate = tc.measure(rows, estimator=estimator, **context)
            except InputError as error:
                raise InputError(f"group {group!r}: {error}" if group else str(error)) from error
            estimates.append(GroupEstimate(by, group, replace(estimate, warnings=(*data.notes, *estimate.warnings))))
    return estimates


def _selected_groups(data: Loaded, columns: Sequence[str]) -> "dict[str, tc.Predictions]":
    """Return the rows of each group that has a row of --select, by name (all its rows); without columns {"": all rows}."""
    groups = split_rows(data.whole, columns) if columns else {"": data.whole}
    return {name: rows for name, rows in groups.items() if data.select is None or data.select.mask(rows).any()}


def split_rows(preds: "tc.Predictions", columns: Sequence[str]) -> "dict[str, tc.Predictions]":
    """Split rows by the value of a column, or by the combination of values of several: Predictions by name, in their order."""
    groups = group_rows(preds, columns)
    parts = {name: preds.take(rows) for name, rows in zip(groups.names, groups.rows(), strict=True)}
    # rows of weight 0 do not count, so that a group of them is none, as in a scan
    return {name: part for name, part in parts.items() if part.weights is None or part.weights.any()}


def _estimate_of_tool(data: Loaded, tool: str, options: EstimatorOptions, ours: GroupEstimate) -> GroupEstimate:
    """Measure the rows as another tool does; warnings of the estimate list how its definition, and its lens, differ from `ours`."""
    convention = like_for(data.preds, tool)
    estimate = convention.measure(data.preds, level=options.level, rng=options.seed)
    lens = ours.estimate.lens
    reasons = () if estimate.lens == lens else (f"it is about the {estimate.lens}, ours about the {lens}",)
    notes = [f"as {tool} computes it: {reason}" for reason in (*reasons, *convention.differs)]
    return GroupEstimate("", "", replace(estimate, warnings=(*notes, *estimate.warnings)), tool)


def _conclude(
    data: Data, overall: "tc.Estimate", max_error: float | None, parts: Sequence[GroupEstimate]
) -> "tc.inference.Conclusion":
    """Conclude about all rows: `overall` against `max_error` (None: no gate); every group of `parts` must pass a gate.

    For one probability per row, without groups and judges, the region of the largest error is found too.
    """
    several_columns = len({part.by for part in parts}) > 1
    groups = [GroupError.of(f"{p.by} = {p.group}" if several_columns else p.group, p.estimate) for p in parts]
    facts: dict[str, Any] = {"tolerance": max_error, "groups": () if max_error is None else groups, "every_group": True}
    if isinstance(data, tc.engines.Scan):
        return conclude(
            overall, rows=RowCounts(data.rows + data.dropped, data.rows, data.dropped, data.selection), **facts
        )
    lens = data.lens or default_lens(data.whole)
    single = not lens.several and lens.shares(data.whole) is None and data.whole.judge is None and data.preds.normalized
    profile = lens(data.preds) if single and not parts else None
    profile = None if profile is not None and profile.batch > 1 else profile
    return conclude(overall, rows=data.counts, profile=profile, **facts)


# ----------------------------------------------------------------------------------------------------
# Text


def _estimate_text(part: GroupEstimate, conclusion: "tc.inference.Conclusion | None") -> str:
    """Return an estimate as lines of label and value: error, interval, p-value, direction, region, sample, estimator, warnings.

    What an estimate lacks has no line; the direction is shown from 0.0005 on, the region where `conclusion` has one and shows
    miscalibration. Labels are padded to one width.
    """
    e, (low, high) = part.estimate, part.limits
    spec, direction = f".{digits.decimals(low, high)}f", float(e.direction)
    lines = {e.metric: f"{float(e.value):{spec}}"}
    if e.interval is not None:
        lines[f"{e.interval.level:.0%} interval"] = f"[{low:{spec}}, {high:{spec}}]"
    if e.p_value is not None:
        lines["p-value of calibration"] = digits.p_text(float(e.p_value))
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
    binning = getattr(e.estimator, "binning", None)
    bins = [] if e.bins is None else [f"{e.bins.filled} bins"]
    lines["estimator"] = ", ".join([type(e.estimator).__name__, *bins, *([] if binning is None else [str(binning)])])
    width = max(map(len, lines))
    return "\n".join(
        f"{name:<{width}}  {text}" for name, text in [*lines.items(), *(("warning", w) for w in e.warnings)]
    )


def _tables_text(measured: Sequence[GroupEstimate], data: Data, columns: Sequence[Sequence[str]]) -> str:
    """Return one table per grouping, then warnings (with the groups that have them) and a note about several groups."""
    tables = [
        Frame.from_records(part.cells() for part in measured if part.by == by).to_text()
        for by in dict.fromkeys(part.by for part in measured)
    ]
    notes = []
    for text in dict.fromkeys(text for m in measured for text in m.estimate.warnings):
        warned = [m for m in measured if text in m.estimate.warnings]
        groups = ", ".join(dict.fromkeys(m.group or m.estimator_word for m in warned))
        notes.append(f"warning: {text}" if len(warned) == len(measured) else f"warning: {groups}: {text}")
    if len({m.group for m in measured}) > 1:
        one_label = isinstance(data, Loaded) and all(
            (rows.labels == rows.labels[0]).all() for c in columns for rows in _selected_groups(data, c).values()
        )
        notes.append(_ONE_LABEL.format(" and ".join(map(", ".join, columns))) if one_label else _ALONE)
    return "\n".join(["\n\n".join(tables), *notes])


# ----------------------------------------------------------------------------------------------------
# Other numbers of the same rows


def _other_table_reply(
    flag: str, source: GroupedFiles, options: EstimatorOptions, thresholds: list[float] | None
) -> Reply:
    """Return the reply of --values, --clinical, --net-benefit or --abstention (`flag`) on the selected rows of one file.

    Each row of its table is a statement. Abstention has the rows at 10 %, 20 %, ..., 100 % answered; net benefit is by default at
    0.25, 0.5, 1, 1.5, 2, 3 and 4 times the rate of events, below 0.95. Refuses scans, and --by except with --clinical.
    """
    if source.scans:
        raise InputError(f"{flag} needs the rows of one file in memory; leave out --engine and further files")
    if source.by and flag != "--clinical":
        raise InputError(f"--by has no table with {flag}; use --select COLUMN=VALUE for one group")
    loaded = load(source)
    preds = loaded.preds
    common: dict[str, Any] = {"lens": loaded.lens, "level": options.level}
    result: Any
    with working("measuring"):
        if flag == "--values":
            rows, text = _stated_values(preds, loaded.lens or default_lens(preds), options.level)
            content: dict[str, Any] = {"values": rows}
        elif flag == "--abstention":
            result = tc.selective.risk_coverage(preds, rng=options.seed, **common)
            rows = [row for row in result.frame() if round(100 * row["answered"]) % 10 == 0]
            content, text = {"area": result.area.value, "excess": result.area.excess, "curve": rows}, str(result)
        elif flag == "--clinical":
            result = tc.clinical.summary(preds, by=list(source.by) or None, rng=options.seed, **common)
            content, text, rows = result.to_dict(), str(result), list(result.frame())
        else:
            rate = float(np.mean(preds.labels == 1))
            candidates = {round(factor * rate, 3) for factor in (0.25, 0.5, 1, 1.5, 2, 3, 4)}
            result = tc.clinical.net_benefit(
                preds, thresholds or sorted(t for t in candidates if 0 < t < 0.95), **common
            )
            text, rows = str(result), list(result.frame())
            content = {"thresholds": rows}
    statements = []
    for row in rows:
        numbers = {key: float(value) for key, value in row.items() if isinstance(value, int | float)}
        name = next(str(row[key]) for key in ("name", "threshold", "score", "answered") if key in row)
        statements.append(Statement(name, ", ".join(f"{key} {x:.4g}" for key, x in numbers.items()), numbers))
    dropped = f"\n{loaded.counts.sentence}" if loaded.counts.sentence else ""
    content = {"source": source.name, "level": options.level, **content, "counts": asdict(loaded.counts)}
    return Reply(flag.removeprefix("--"), content, f"{text}{dropped}", statements, warnings=loaded.notes)


def _stated_values(preds: "tc.Predictions", lens: "tc.lenses.Lens", level: float) -> tuple[list[dict[str, Any]], str]:
    """Return every distinct score with its frequency and interval, as rows and as text; refuse more than 20 scores.

    Rows are "score" and the fields of a region of `stated_values`. In the text a score outside its interval is marked "off".
    """
    if lens.several or lens.shares(preds) is not None:
        raise InputError("--values shows one probability per row; use --lens top-label, positive or class=NAME")
    regions = stated_values(lens(preds), level)
    if not regions:
        raise InputError("--values shows up to 20 distinct scores, and there are more; see the bins of truecal report")
    happened = "right" if names.judges_answers(lens.describe(preds)) else "happened"
    records = []
    for r in regions:
        score, frequency, low, high = map(digits.percent, (r.mean_score, r.frequency, r.low, r.high))
        record = {"score": score, "rows": r.rows, happened: r.outcomes, "frequency": frequency}
        off = "" if r.low <= r.mean_score <= r.high else "off"
        records.append({**record, f"{level:.0%} interval": f"{low} to {high}", "": off})
    return [{"score": r.mean_score, **asdict(r)} for r in regions], Frame.from_records(records).to_text()
