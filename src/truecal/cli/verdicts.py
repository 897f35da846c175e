"""`truecal verify`, `decision`, `audit` and `likert`: questions about one set of predictions beside the size of its error."""

from typing import Annotated, Any

import truecal as tc
from truecal import parallel
from truecal.cli.command import ALL_FORMATS, Count, Fraction, NumberRange, Probability, Seed, Several, command
from truecal.cli.input import Files, GroupedFiles, OneFile, PlainFile, Scale, classes_by_word, load
from truecal.cli.output import Reply, Statement, working
from truecal.cli.scan import is_sketched, read_sketch, scan_files
from truecal.errors import InputError


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
    warnings = (*verification.warnings, *notes)
    content = {"source": source.name, "passed": conclusion.passed, **verification.to_dict(), "warnings": warnings}
    text = "\n".join([str(verification), *(f"  warning: {note}" for note in notes)])
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
    """Estimate what miscalibration costs a user who acts on scores of at least --threshold.

    A false alarm costs t and a missed event 1 - t, or what --costs says. Without a threshold: the largest loss of all of them.

    --threshold T         Score from which a case is acted on; may be repeated.  [default: 0.01 to 0.99]
    --costs ALARM MISSED  Costs of a false alarm and of a missed event, in place of --threshold.
    """
    loaded = load(source)
    with working("redrawing outcomes"):
        loss = tc.decision_loss(loaded.preds, threshold or None, costs, lens=loaded.lens, level=level, rng=seed)
    assert isinstance(loss, tc.scores.DecisionLoss)
    labels = {"source": source.name, "lens": loss.lens}
    statements = []
    for loss_at in [loss.at(t) for t in loss.thresholds] if threshold or costs else [loss.maximum]:
        numbers = {"threshold": loss_at.threshold, "loss": loss_at.value, "low": loss_at.low, "high": loss_at.high}
        statements.append(Statement(f"{source.name} at {loss_at.threshold:g}", str(loss_at), numbers, labels=labels))
    return Reply("decision", {"source": source.name, **loss.to_dict()}, str(loss), statements)


@command()
def audit(
    source: GroupedFiles,
    *,
    depth: Count = 3,
    min_rows: Several | None = None,
    tolerance: Fraction | None = None,
    level: Fraction = 0.95,
) -> Reply:
    """Search the predictions in FILE for miscalibrated segments, with one error rate for the whole search.

    All intersections of up to --depth columns are tested, as a whole and in regions of the scores; the chance that any calibrated
    segment is listed is at most 1 - LEVEL. A pattern, a folder or several files are scanned once, grouped by the --by columns.

    Exit 0 if no segment is beyond the tolerance, 1 if one is, 2 if the input cannot be used.

    --by COLUMN    A column to search; may be repeated.  [default: all other columns]
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
    level: Fraction = 0.95,
    seed: Seed = 0,
) -> Reply:
    """Test the outputs in FILE as words of an answer scale, such as low, medium and high.

    A word holds when, among the outputs it covers, the event happens with a frequency inside the limits of the word.

    Exit 0 if no word is shown to be wrong, 1 if the frequency of one lies outside its limits (at --level), 2 if the input cannot
    be used.

    --scale, --bands WORD=LOW:HIGH,...  Your words and their limits, e.g. 'unsure=0:0.6,sure=0.6:1'.
                                        [default: low=0:0.33,medium=0.33:0.66,high=0.66:1]
    --of CLASS                          The class whose probability is shown.  [default: the predicted one]
    """
    preds = load(source).preds
    class_name = None if of is None else classes_by_word(preds).get(of, of)
    with working("judging words"):
        report = tc.likert(preds, scale or tc.groups.answer_scales.SCALE, class_name=class_name, level=level, rng=seed)
    outside = f"\n{report.outside} outputs are covered by no word" if report.outside else ""
    content = {"source": source.name, **report.to_dict(), "passed": report.passed, "gate": report.gate}
    return Reply("likert", content, f"{report}{outside}\n{report.gate}", failed=not report.passed)
