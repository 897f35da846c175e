"""Displays drawn in a column of a paper: 3.25 inches wide, with the axes given. Nothing leaves the canvas, no titles meet."""

import matplotlib
import numpy as np
import pytest

import truecal as tc

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.text import Text

RNG = np.random.default_rng(0)
P = RNG.beta(5, 1, 600)
Y = (RNG.random(600) < P**1.3).astype(int)
PREDS = tc.Predictions.from_probs(P, Y)


def _watch():
    watch = tc.Watch(tolerance=0.02)
    for day in range(8):
        watch.update(PREDS.take(np.arange(600) % 8 == day), at=f"2026-05-{day + 1:02}")
    return watch


DISPLAYS = {
    "reliability": lambda ax: tc.plot.ReliabilityDisplay.from_predictions(Y, P, name="a model with a name", ax=ax),
    "over time": lambda ax: tc.plot.OverTimeDisplay.from_watch(_watch(), ax=ax),
}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def outside(figure):
    """Texts and axes that are not whole on the canvas, after drawing."""
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    shown = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
    # ticks that matplotlib keeps beyond the limits of an axis are never drawn
    drawn = [t for t in shown if t.axes is None or t in _drawn_texts(t.axes)]
    boxes = [(t.get_text(), t.get_window_extent()) for t in drawn]
    boxes += [("axes", ax.get_window_extent()) for ax in figure.axes]
    return [name for name, b in boxes if b.x0 < -1 or b.y0 < -1 or b.x1 > width + 1 or b.y1 > height + 1]


def _drawn_texts(ax):
    texts = [ax.title, ax._left_title, ax._right_title, *ax.texts]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        texts += [axis.label, *(t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high)]
    legend = ax.get_legend()
    return texts + ([] if legend is None else legend.get_texts())


@pytest.mark.parametrize(
    ("name", "layout"), [("reliability", "constrained"), ("reliability", None), ("over time", "constrained")]
)
def test_nothing_leaves_the_canvas_of_a_column(name, layout, tmp_path):
    figure, ax = plt.subplots(figsize=(3.25, 2.8), layout=layout)
    DISPLAYS[name](ax)
    assert outside(figure) == []
    figure.savefig(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_titles_of_neighbours_do_not_meet():
    figure, axes = plt.subplots(1, 2, figsize=(3.25, 2.4), layout="constrained")
    for ax in axes:
        DISPLAYS["reliability"](ax)
    assert outside(figure) == []
    left, right = (ax._left_title.get_window_extent() for ax in axes)
    assert left.x1 < right.x0
