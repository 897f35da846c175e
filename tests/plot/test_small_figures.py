"""Every display drawn in a column of a paper: 3.25 inches wide, with the axes given. Nothing leaves the canvas, no words meet."""

import warnings
from itertools import pairwise

import pytest

import truecal as tc
from tests.lazy import Lazy
from tests.plot.small_displays import DISPLAYS

plt = Lazy("matplotlib.pyplot")


def outside(figure):
    """Texts and axes that are not whole on the canvas, after drawing."""
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    words = [t for ax in figure.axes if ax.axison for t in _drawn_texts(ax)] + figure.texts
    boxes = [(t.get_text(), t.get_window_extent()) for t in words if t.get_text().strip() and t.get_visible()]
    boxes += [("axes", ax.get_window_extent()) for ax in figure.axes]
    return [name for name, b in boxes if b.x0 < -1 or b.y0 < -1 or b.x1 > width + 1 or b.y1 > height + 1]


def _drawn_texts(ax):
    # ticks that matplotlib keeps beyond the limits of an axis are never drawn
    texts = [ax.title, ax._left_title, ax._right_title, *ax.texts]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        texts += [axis.label, *(t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high)]
    legend = ax.get_legend()
    return texts + ([] if legend is None else legend.get_texts())


def headings(figure):
    """Boxes of titles, legends and labels of axes, which must not cover each other."""
    boxes = []
    for ax in figure.axes:
        words = [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
        boxes += [
            (t.get_text(), t.get_window_extent()) for t in words if t.get_text() and t.get_visible() and ax.axison
        ]
        legend = ax.get_legend()
        if legend is not None:
            boxes.append(("legend", legend.get_window_extent()))
    return boxes


def meeting(figure):
    boxes = headings(figure)
    return [(a, b) for i, (a, x) in enumerate(boxes) for b, y in boxes[i + 1 :] if _overlap(x, y)]


def touching(figure):
    """Names beside points that cover each other."""
    boxes = [(t.get_text(), t.get_window_extent()) for ax in figure.axes for t in ax.texts if t.get_visible()]
    return [(a, b) for i, (a, x) in enumerate(boxes) for b, y in boxes[i + 1 :] if _overlap(x, y)]


def crowded(figure):
    """Neighbouring numbers or names at the ticks of an axis that cover each other."""
    pairs = []
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            labels = [t.label1 for t in axis.get_major_ticks() if ax.axison and low <= t.get_loc() <= high]
            texts = [t for t in labels if t.get_visible() and t.get_text() and not t.get_rotation() % 90]
            boxes = [(t.get_text(), t.get_window_extent()) for t in texts]
            pairs += [(a, b) for (a, x), (b, y) in pairwise(boxes) if _overlap(x, y)]
    return pairs


def _overlap(a, b):
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1


def test_no_display_is_missing():
    assert set(DISPLAYS) == {*tc.plot.__all__, "InterventionsDisplay", "AgreementDisplay", "BinTrendDisplay"}


@pytest.mark.parametrize("layout", ["constrained", None])
@pytest.mark.parametrize("name", DISPLAYS)
def test_nothing_leaves_the_canvas_of_a_column(name, layout, tmp_path):
    figure, ax = plt.subplots(figsize=(3.25, 2.8), layout=layout)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that gives up says so
        display = DISPLAYS[name](ax)
        for resolution in (300, 100):  # letters are wider at some
            figure.dpi = resolution
            assert outside(figure) == []
    assert meeting(figure) == []
    assert crowded(figure) == []
    assert touching(figure) == []
    wide, high = figure.get_size_inches() * figure.dpi
    drawn = [a for a in getattr(display, "axes_", [ax]) for a in (a if hasattr(a, "__len__") else [a])]
    if (
        len(drawn) == 1
    ):  # what is written around it leaves the picture at least two fifths of the width and a third of the height
        box = drawn[0].get_window_extent()
        assert box.width > 0.4 * wide
        assert box.height > 0.33 * high
    figure.savefig(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("layout", ["constrained", None])
@pytest.mark.parametrize("name", ["ReliabilityDisplay", "AbstentionDisplay", "DecisionDisplay", "FlexibleDisplay"])
def test_neighbours_in_a_wide_figure_do_not_meet(name, layout):
    figure, axes = plt.subplots(1, 2, figsize=(5.5, 2.6), layout=layout)
    for ax in axes:
        DISPLAYS[name](ax)
    assert outside(figure) == []
    assert meeting(figure) == []


def test_the_checks_can_fail():
    figure, ax = plt.subplots(figsize=(3.25, 2.8))
    ax.set_title("a title that is longer than the column of the paper that it stands in")
    ax.set_title("left", loc="left")
    ax.set_xticks([0.1, 0.11], ["ten", "eleven"])
    assert outside(figure)
    assert meeting(figure)
    assert crowded(figure)
