"""`truecal report`, a page to forward, and `truecal demo`, which trains classifiers and measures them."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import truecal as tc
from truecal import digits
from truecal.cli.command import Fraction, Numbers, Seed, WriteTo, command
from truecal.cli.input import GroupedFiles, Scale, load
from truecal.cli.output import Reply, command_line, page_written, working
from truecal.cli.scan import scan_files
from truecal.errors import InputError
from truecal.inference.conclusion import conclude
from truecal.lenses.one_probability import default_lens
from truecal.table import Frame


@command()
def report(
    source: GroupedFiles,
    *,
    tolerance: Fraction = 0.02,
    fast: bool = False,
    dossier: Literal["tripod-ai"] | None = None,
    title: str = "Calibration report",
    scale: Scale | None = None,
    thresholds: Numbers | None = None,
    out: WriteTo = "report.html",
    level: Fraction = 0.95,
    seed: Seed = 0,
) -> Reply:
    """Write a self-contained HTML report about the predictions in FILE.

    A pattern such as 'logs/*.parquet', a folder, several files or --engine give a report from a scan in bounded memory, which says
    how far its numbers can be from those of all rows at once.

    The page opens offline, holds sums and no rows of the data, and recomputes the binned error in the browser as you move its
    controls.

    --tolerance E   The largest error that is acceptable; the verdict is about it.
    --fast          Leave out what takes seconds: segments, recalibration.
    --dossier NAME  Instead write the items of a reporting guideline, to print.
    --title TEXT    Heading of the page.
    --scale, --bands WORD=LOW:HIGH,...  Words for scores, e.g. 'low=0:0.1,high=0.1:1'.
    --thresholds T,...  Scores from which one acts; the verdict then says what miscalibration costs there.
    --out FILE      Where to write the page.
    """
    if source.lens == "class-wise":
        raise InputError("the report judges one quantity; use --lens top-label, positive or class=NAME")
    if dossier is not None and source.scans:
        raise InputError("a dossier needs the rows of one file; leave out --engine and further files")
    common: dict[str, Any] = {"level": level, "source": source.name, "command": command_line(), "rng": seed}
    page: dict[str, Any] = {"tolerance": tolerance, "title": title, "fast": fast}
    page |= {"scale": scale, "thresholds": thresholds}
    data: Any = scan_files(source) if source.scans else None
    if data is None:
        loaded = load(source)
        common |= {"rows": loaded.counts, "lens": loaded.lens, "by": list(source.by) or None}
        data, page = loaded.whole, {**page, "select": loaded.select, "files": _digest(source.file)}
        if dossier is not None:
            from truecal.pages.dossier import write_dossier

            with working("writing the dossier"):
                path = write_dossier(loaded.preds, out, tolerance=tolerance, **common)
            return page_written("report-written", path, source=source.name)
    with working() as show:
        path = tc.report(data, out, progress=show, **page, **common)
    return page_written("report-written", path, source=source.name)


def _digest(file: str) -> dict[str, str]:
    """Return {name: SHA-256} of a file, as sha256sum gives it; {} for standard input.

    >>> _digest("-")
    {}
    """
    if not Path(file).is_file():
        return {}
    with open(file, "rb") as stream:
        return {Path(file).name: hashlib.file_digest(stream, "sha256").hexdigest()}


# ----------------------------------------------------------------------------------------------------
# `truecal demo`: real classifiers, trained here on scikit-learn's bundled data, measured as a newcomer would

_TOLERANCE = 0.02
_MODELS = ("naive-bayes", "logistic", "forest-100")
_REPORTED = "digits: forest-100"


@command()
def demo(*, out: WriteTo = "truecal-demo.html") -> Reply:
    """Train classifiers on scikit-learn's digits and breast-cancer data, measure them, and write a report.

    --out FILE  Where the report goes.
    """
    models = dict(_demo_predictions())
    rows, verdicts, records = [], [], []
    for name, preds in models.items():
        conclusion = conclude(tc.measure(preds), tolerance=_TOLERANCE, profile=default_lens(preds)(preds))
        size = digits.with_interval(conclusion.value, conclusion.low, conclusion.high)
        accuracy = f"{tc.scores.summary(preds).accuracy:.3f}"
        rows.append(
            {"held-out predictions": name, "n": conclusion.n, "accuracy": accuracy, "error [95% interval]": size}
        )
        text = f"{conclusion.headline}. {conclusion.sentence} {conclusion.reading}"
        verdicts.append(f"  {name}\n{fill(text, 100, initial_indent='    ', subsequent_indent='    ')}")
        records.append({"model": name, **conclusion.to_dict()})
    page = {"title": f"Calibration of {_REPORTED}", "source": "scikit-learn digits", "command": "truecal demo"}
    path = Path(tc.report(models[_REPORTED], out, tolerance=_TOLERANCE, **page)).resolve()
    text = "\n".join(
        [
            f"How far is their confidence from the truth?\n\n{Frame.from_records(rows).to_text()}",
            "\nWhat to conclude\n",
            *verdicts,
            f"\nReport: {path}",
        ]
    )
    return Reply("demo", {"models": records, "path": str(path)}, text)


def _demo_predictions() -> Iterator[tuple[str, "tc.Predictions"]]:
    """Yield "dataset: model" and the predictions of held-out rows, of models and bundled data of the example study.

    Data are digits and cancer; models naive-bayes, logistic and forest-100, trained once each (seed 0) on the training rows.
    """
    from truecal.study import example

    for name in ("digits", "cancer"):
        data = example.load(name)
        for model in (model for model in example.models() if model.name in _MODELS):
            (logits,) = example.log_probabilities(model, data.train_x, data.train_y, [data.test_x], seed=0)
            yield f"{name}: {model.name}", tc.Predictions.from_logits(logits, data.test_y)
