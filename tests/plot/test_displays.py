"""Displays: the numbers they draw are the library's, and drawing changes nothing else."""

import numpy as np
import pytest

import truecal as tc
from tests.lazy import Lazy
from truecal.plot import AbstentionDisplay, LikertDisplay, ReliabilityDisplay
from truecal.plot.bars import InterventionsDisplay

plt = Lazy("matplotlib.pyplot")


@pytest.fixture
def binary():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 0.5, 1000)
    return (rng.random(1000) < p**1.5).astype(int), p


@pytest.fixture
def many():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.full(5, 0.4), 800)
    labels = (probs.cumsum(axis=1) < rng.random((800, 1))).sum(axis=1).clip(0, 4)
    return labels, probs


def drawn(display):
    """Draw for real, which is when matplotlib finds mistakes."""
    display.figure_.canvas.draw()
    return display


@pytest.mark.parametrize("scheme", ["width", "mass", "sweep"])
def test_reliability_numbers(binary, scheme):
    y, p = binary
    display = ReliabilityDisplay.from_predictions(y, p, bins=7, scheme=scheme, level=0.9, plot=False)
    profile = tc.profile.Profile.from_arrays(p, y)
    estimator = tc.SweepECE(norm=1) if scheme == "sweep" else tc.BinnedECE(bins=7, scheme=scheme)
    bins = estimator(profile).bins
    low, high = bins.interval(0.9)
    assert display.frame() == {
        "score": bins.mean_score.tolist(),
        "outcome": bins.mean_outcome.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "count": bins.counts.tolist(),
    }
    assert display.ax_ is None
    curve = tc.RankSeries()(profile).curve
    assert display.frame("smooth")["outcome"].tolist() == curve.outcome.tolist()
    band = tc.inference.band(profile, level=0.9)
    assert display.frame("smooth")["low"].tolist() == band.at(curve.score)[0].tolist()
    assert (
        display.frame("isotonic")["outcome"].tolist() == tc.estimators.IsotonicError()(profile).curve.outcome.tolist()
    )
    histogram = display.frame("histogram")
    expected = np.histogram(p, np.arange(51) / 50)[0] / 1000
    assert histogram["share"] == pytest.approx(expected, abs=1e-12)


def test_weights_count_in_the_histogram(binary):
    y, p = binary
    w = np.arange(1000) % 3 + 1
    display = ReliabilityDisplay.from_predictions(y, p, sample_weight=w, plot=False)
    expected = np.histogram(p, np.arange(51) / 50, weights=w)[0] / w.sum()
    assert display.frame("histogram")["share"] == pytest.approx(expected, abs=1e-12)


def test_reliability_draws_its_numbers(binary):
    display = drawn(ReliabilityDisplay.from_predictions(*binary, bins=10, isotonic=True))
    (dots,) = [c for c in display.ax_.collections if c.get_label() == "bins"]
    shown = dots.get_offsets().data
    frame = display.frame()
    expected = np.column_stack([frame["score"], frame["outcome"]])
    assert shown == pytest.approx(expected)
    assert len(display.ax_.texts) == len(frame["count"])  # a count beside every bin
    assert len(display.histogram_ax_.patches) == 50
    assert {line.get_linestyle() for line in display.ax_.lines} > {"-", ":"}  # told apart without colour


def test_parts_can_be_left_out_and_axes_given(binary):
    figure, (left, right) = plt.subplots(1, 2)
    display = ReliabilityDisplay.from_predictions(
        *binary, ax=right, bins=5, smooth=False, histogram=False, counts=False
    )
    drawn(display)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.lines
    assert len(right.lines) == 1
    assert display.histogram_ax_ is None
    assert not right.texts


def test_from_estimator(many):
    from sklearn.datasets import load_iris
    from sklearn.naive_bayes import GaussianNB

    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = GaussianNB().fit(X, names)
    display = drawn(ReliabilityDisplay.from_estimator(model, X, names))
    assert display.ax_.get_title(loc="left").startswith("GaussianNB: RMS error")
    assert display.ax_.get_ylabel() == "Accuracy"
    two = y < 2
    both = ReliabilityDisplay.from_estimator(GaussianNB().fit(X[two], y[two]), X[two], y[two])
    assert both.ax_.get_ylabel() == "Frequency"
    with pytest.raises(tc.InputError, match="no predict_proba"):
        ReliabilityDisplay.from_estimator(object(), X, y)


def test_the_axis_says_what_the_lens_judges(many):
    y, probs = many
    pets = tc.Grouping({"first": [0, 1], "rest": [2, 3, 4]})
    named = {
        tc.TopLabel(): "Accuracy",
        tc.OneClass(2): "Frequency",
        pets.then(tc.TopLabel()): "Accuracy",
        pets.then(tc.OneClass("rest")): "Frequency",
    }
    for lens, expected in named.items():
        assert ReliabilityDisplay.from_predictions(y, probs, lens=lens).ax_.get_ylabel() == expected


def test_refusals(binary, many):
    with pytest.raises(tc.InputError, match="a diagram for each"):
        ReliabilityDisplay.from_predictions(*many, lens=tc.ClassWise())
    with pytest.raises(tc.InputError, match="one dataset"):
        ReliabilityDisplay.from_profile(tc.profile.Profile.from_arrays(np.full((2, 5), 0.5), np.ones((2, 5))))
    with pytest.raises(tc.InputError, match=r"part must be 'bins' or .*, not 'all'"):
        ReliabilityDisplay.from_predictions(*binary, plot=False).frame("all")
    with pytest.raises(tc.InputError, match="no column 'cost'"):
        AbstentionDisplay({"answered": [1], "series": ["a"]})
    with pytest.raises(tc.InputError, match="different lengths"):
        AbstentionDisplay({"answered": [1, 2], "cost": [0.5], "series": ["a"]})
    with pytest.raises(tc.InputError, match="nothing to draw"):
        AbstentionDisplay({"answered": [], "cost": [], "series": []})


def test_likert(binary):
    y, p = binary
    report = tc.likert(
        tc.Predictions.from_probs(p, y), {"never": (0.0, 0.0001), "low": (0.0001, 0.6), "high": (0.6, 1.0)}
    )
    display = drawn(LikertDisplay.from_report(report))
    assert display.ax_.get_yticklabels()[0].get_text().startswith("never (n = ")
    rates = [line.get_xdata()[0] for line in display.ax_.lines]
    assert rates == [rate for rate in report.frame()["mean_outcome"] if rate is not None]


def test_abstention():
    frame = {"answered": [1.0, 0.5, 0.5], "cost": [0.1, 0.02, 0.2], "series": ["a", "a", "b"]}
    display = drawn(AbstentionDisplay(frame).plot())
    assert display.ax_.lines[0].get_xydata().tolist() == [[0.5, 0.02], [1.0, 0.1]]


def test_every_public_name_is_a_display():
    from truecal.plot.display import Display

    ours = [getattr(tc.plot, name) for name in tc.plot.__all__]
    assert len(ours) >= 7
    assert all(issubclass(kind, Display) for kind in ours)


def test_matplotlib_is_loaded_when_drawing_and_missed_by_name(processes):
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.pyplot'] = None\n"
        "from truecal.plot import ReliabilityDisplay\n"
        "display = ReliabilityDisplay.from_predictions([0, 1] * 20, [0.2, 0.8] * 20, plot=False)\n"
        "try: display.plot()\nexcept ImportError as error: print(error)"
    )
    ran = processes.python(code)
    assert "pip install 'truecal[plot]'" in ran.stdout


def test_axes_of_a_reliability_diagram_fit_the_scores_and_its_legend_covers_no_bin():
    rng = np.random.default_rng(0)
    p = np.append(rng.beta(1.2, 18, 2000), 0.9)
    display = ReliabilityDisplay.from_predictions(rng.random(2001) < p, p)
    low, high = display.ax_.get_xlim()
    assert low == 0
    assert high < 0.5
    display.figure_.canvas.draw()
    assert display.ax_.get_legend().get_window_extent().y0 >= display.ax_.get_window_extent().y1 - 1
    assert {text.get_text() for text in display.ax_.get_legend().get_texts()} == {"bins", "smooth", "its band"}


def test_bins_and_bars_of_low_scores_fit_the_part_of_the_axis_that_is_shown():
    rng = np.random.default_rng(0)
    p = rng.beta(1.2, 40, 3000)
    display = ReliabilityDisplay.from_predictions(rng.random(3000) < p, p, plot=False)
    low, high = display.numbers.limits
    assert high < 0.2
    counts = display.frame()["count"]
    assert len(counts) == 15
    assert counts.max() < 2 * counts.min()
    histogram = display.frame("histogram")
    assert (histogram["left"][0], histogram["right"][-1]) == (low, high)
    assert histogram["share"].sum() == pytest.approx(np.mean(p < high), abs=1e-12)


def test_flexible_curve_of_low_risks_fills_its_axes():
    rng = np.random.default_rng(0)
    p = rng.beta(1.2, 40, 3000)
    curve = tc.clinical.flexible_curve(tc.Predictions.from_probs(p, rng.random(3000) < p))
    ax = drawn(tc.plot.FlexibleDisplay.from_curves({"spline": curve}, scores=p)).ax_
    assert ax.get_xlim()[1] < 0.2
    assert curve.high.max() <= ax.get_ylim()[1] < 0.5


def test_net_benefit_ends_where_nobody_is_treated():
    rng = np.random.default_rng(0)
    p = rng.beta(1.2, 40, 3000)
    curve = tc.clinical.net_benefit(tc.Predictions.from_probs(p, rng.random(3000) < p))
    assert tc.plot.DecisionDisplay.from_curve(curve).ax_.get_xlim()[1] < 0.4


def test_text_is_light_on_a_dark_background():
    with plt.style.context("dark_background"):
        display = InterventionsDisplay({"intervention": ["a"], "what": ["b"], "mean": [0.1], "sd": [0.05]}).plot()
        (whisker,) = [c for c in display.ax_.collections if len(c.get_segments()) == 1]
        assert whisker.get_color()[0][:3].tolist() == [1.0, 1.0, 1.0]


def test_a_single_line_is_named_where_the_user_named_it():
    frame = {"answered": [0.5, 1.0], "cost": [0.02, 0.1], "series": ["forest"] * 2}
    assert [text.get_text() for text in AbstentionDisplay(frame).plot().ax_.get_legend().get_texts()] == ["forest"]
    curve = tc.clinical.flexible_curve(tc.Predictions.from_probs(np.linspace(0.1, 0.9, 200), np.arange(200) % 2))
    assert tc.plot.FlexibleDisplay.from_curves({"spline": curve}).ax_.get_legend() is None
