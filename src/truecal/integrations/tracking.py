"""Numbers, figure and page of predictions, as trackers of experiments and metric libraries take them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import truecal as tc
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens


def estimate_numbers(estimate: tc.Estimate, name: str = "error") -> dict[str, float]:
    """Return the value as `name`, and `low`, `high` and `p_value` where the estimate has an interval and a test."""
    numbers = {name: float(estimate)}
    if estimate.interval is not None:
        numbers |= {"low": float(estimate.interval.low), "high": float(estimate.interval.high)}
    return numbers if estimate.p_value is None else {**numbers, "p_value": float(estimate.p_value)}


@contextmanager
def reliability_figure(preds: tc.Predictions, lens: Lens | None) -> Iterator[Any]:
    """Yield the reliability diagram of one lens (None: the default one) as a matplotlib figure; close it after the block."""
    from matplotlib import pyplot

    lens = default_lens(preds) if lens is None else lens
    figure = tc.plot.ReliabilityDisplay.from_profile(lens(preds)).figure_
    try:
        yield figure
    finally:
        pyplot.close(figure)


@contextmanager
def report_file(preds: tc.Predictions, lens: Lens | None, level: float) -> Iterator[Path]:
    """Yield the path of the report, written to a temporary folder that is deleted after the block."""
    with TemporaryDirectory() as folder:
        yield tc.report(preds, Path(folder) / "report.html", lens=lens, level=level)
