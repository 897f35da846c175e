"""`truecal verify`: can we promise that the error is below a threshold?"""

from dataclasses import asdict

import click

import truecal as tc
from truecal.cli.estimators import lens_option, make_lens
from truecal.cli.output import Answer, Finding, Output, Share, format_options, working
from truecal.cli.scan import is_sketched, sketch_of
from truecal.cli.source import Source, load, scan_options


@click.command()
@click.option(
    "--max-error",
    "--threshold",
    type=Share(0, 1),
    default=0.02,
    show_default=True,
    help="The error to be promised: the `threshold` of tc.verify.",
)
@click.option(
    "--level",
    type=Share(0.5, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How sure the promise is to be.",
)
@click.option(
    "--assume-smooth",
    is_flag=True,
    help="Pass on `supported` too: continuous outputs whose calibration curve is smooth.",
)
@lens_option
@format_options
@scan_options
def verify(source: Source, max_error: float, level: float, assume_smooth: bool, lens: str, output: Output) -> int:
    """Say whether the root-mean-square calibration error of FILE can be promised to be below --max-error.

    FILE may be a folder, a pattern, several files or a saved sketch, which are read in one pass and in bounded memory.

    Exit 0 if it is promised (or supported, with --assume-smooth), 1 if it is not (the error is larger, or the data are too few
    to tell), 2 if the input cannot be used.
    """
    from truecal.pages import records

    data = sketch_of(source, lens) if is_sketched(source) else load(source)
    judged = None if isinstance(data, tc.Sketch) else make_lens(lens, data)
    with working("verifying"):
        verdict = tc.verify(data, threshold=max_error, level=level, lens=judged)
    passed = bool(verdict) or (assume_smooth and verdict.verdict == "supported")
    content = records.document("verify", source=source.name, passed=passed, **asdict(verdict))
    numbers = {
        "error": verdict.value,
        "low": verdict.low,
        "high": verdict.high,
        "threshold": max_error,
        "rows": float(verdict.n),
    }
    labels = {"source": source.name, "lens": verdict.lens}
    finding = Finding(source.name, str(verdict).splitlines()[0], numbers, passed, labels)
    output.write(Answer("verify", content, str(verdict), [finding], verdict.verdict, verdict.warnings))
    return 0 if passed else 1
