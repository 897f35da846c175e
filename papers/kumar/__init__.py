"""Kumar, Liang and Ma, "Verified uncertainty calibration" (2019): every numbered item (K)."""

import numpy as np

from papers.kumar.outputs import lower_loss_at
from papers.page import Row, items_of, only, se_of, with_se
from truecal.lab import Frame


def _binned(table: Frame, bins: int) -> float:
    return float(only(table, bins=bins, scheme="mass", estimator="plugin")[0]["error"])


def _binned_words(table: Frame, bins: int) -> str:
    (row,) = only(table, bins=bins, scheme="mass", estimator="plugin")
    return f"{with_se(row['error'], se_of(row), 4)} at {bins}"


def _times(first: Row, second: Row, column: str) -> tuple[float, float]:
    """Ratio of two means of simulations, and its standard error."""
    ratio = float(first[column] / second[column])
    return ratio, ratio * float(np.hypot(se_of(first) / first[column], se_of(second) / second[column]))


def _both(table: Frame, bins: int) -> tuple[Row, Row]:
    """Scaling-binning and histogram binning."""
    below, above = (only(table, bins=bins, method=m)[0] for m in ("scaling-binning", "histogram binning"))
    return below, above


def _lower_words(table: Frame, bins: int) -> str:
    """How much lower the squared error of scaling-binning is than that of histogram binning."""
    ratio, spread = _times(*_both(table, bins), "squared_error")
    return f"{1 - ratio:.0%} +- {spread:.0%}"


def _times_lower_words(table: Frame, bins: int) -> str:
    below, above = _both(table, bins)
    return with_se(*_times(above, below, "squared_error"), 1)


def _kumar(table: Frame, bins: int) -> float:
    return float(only(table, bins=bins, method="scaling-binning")[0]["below_histogram"])


def _ratio(table: Frame, kind: str, first: tuple[int, int], second: tuple[int, int]) -> tuple[float, float]:
    """Ratio of two squared errors of `kumar-e-a`, and its standard error."""
    return _ratio_of(*(only(table, calibrator=kind, n=n, bins=b)[0] for n, b in (first, second)))


def _ratio_of(first: Row, second: Row) -> tuple[float, float]:
    ratio = float(first["squared_error"] / second["squared_error"])
    parts = (r["squared_error_se"] / r["squared_error"] for r in (first, second))
    return ratio, ratio * float(np.hypot(*parts))


def _deviations(table: Frame, bins: int) -> tuple[Row, Row]:
    """Plug-in and debiased estimates from 1000 rows."""
    plugin, debiased = (only(table, bins=bins, n=1000, estimator=kind)[0] for kind in ("plugin", "debiased"))
    return plugin, debiased


def _closer(table: Frame, bins: int) -> float:
    """How many times smaller the mean squared deviation of the debiased estimate is."""
    return _times(*_deviations(table, bins), "mean_squared_deviation")[0]


def _closer_words(table: Frame, bins: int) -> str:
    return with_se(*_times(*_deviations(table, bins), "mean_squared_deviation"), 1)


def _mean_deviation(table: Frame) -> tuple[float, float]:
    """Means of |estimate - truth| with 100 bins, plug-in and debiased."""
    plugin, debiased = (only(table, bins=100, estimator=kind)[0]["mean_deviation"] for kind in ("plugin", "debiased"))
    return float(plugin), float(debiased)


def _scaling_ratio(table: Frame) -> tuple[float, float]:
    rows = [only(table, calibrator=kind, n=3000)[0] for kind in ("scaling", "scaling-binning")]
    return _ratio_of(*rows)


def _largest_share(table: Frame) -> float:
    return max(float(r["mean_percent"] / r["truth_percent"]) for r in only(table, estimator="debiased"))


def _most_bins(table: Frame, kind: str) -> int:
    allowed = [r for r in table if r[f"allowed_{kind}"]]
    return int(min(allowed, key=lambda r: r["mean_squared_error"])["bins"]) if allowed else 0


_NO_DATA = "needs outputs that are not public here; the command takes them with --data; without it 50,000 rows of an ImageNet world"
ITEMS = items_of(
    "kumar",
    {
        "Figure 1": (
            lambda t: f"{len(set(t['scaling-binning'].tolist()))} outputs of scaling-binning",
            lambda t: len(set(t["scaling-binning"].tolist())) == 4,
        ),
        "Example 3.2": (
            lambda t: f"{t['binned_error_l1'].max():.4f}, {t['true_error_l1'].min():.4f}",
            lambda t: t["binned_error_l1"].max() < 0.001 and t["true_error_l1"].min() >= 0.49,
        ),
        "Proposition 3.3": (
            lambda t: f"largest debiased mean over truth {_largest_share(t):.2f}",
            lambda t: all(r["mean_percent"] <= 1.02 * r["truth_percent"] for r in only(t, estimator="debiased")),
        ),
        "Figure 2a": (
            lambda t: f"stand-in world: {_binned_words(t, 15)}, {_binned_words(t, 100)}",
            lambda t: _binned(t, 100) > _binned(t, 2),
        ),
        "Figure 2b": (
            lambda t: ", ".join(_binned_words(t, bins) for bins in (2, 15, 100)),
            lambda t: _binned(t, 2) < _binned(t, 15) < _binned(t, 100),
        ),
        "Figure 3a": (lambda t: f"{_lower_words(t, 100)} lower", lambda t: 0.2 < _kumar(t, 100) < 0.5),
        "Figure 3b": (lambda t: f"{lower_loss_at(t, 0.02):.1%} lower", lambda t: 0.05 < lower_loss_at(t, 0.02) < 0.13),
        "Figure 4": (
            lambda t: f"n = 1000: {_closer_words(t, 10)} times at 10 bins, {_closer_words(t, 100)} times at 100",
            lambda t: _closer(t, 100) > 4,
        ),
        "Figure 5": (
            lambda t: f"stand-in world: {_binned_words(t, 2)}, {_binned_words(t, 100)}",
            lambda t: _binned(t, 100) > _binned(t, 2),
        ),
        "Figure 6": (
            lambda t: f"{_binned_words(t, 2)}, {_binned_words(t, 100)}",
            lambda t: _binned(t, 100) > _binned(t, 2),
        ),
        "Figure 7a": (
            lambda t: f"stand-in world: {_times_lower_words(t, 100)} times lower",
            lambda t: _kumar(t, 100) > 0.5,
        ),
        "Figure 7b": (
            lambda t: f"{_lower_words(t, 100)} lower at 100, {_lower_words(t, 5)} at 5",
            lambda t: _kumar(t, 100) > 0 > _kumar(t, 5),
        ),
        "Figure 8": (
            lambda t: ", ".join(
                "{:.2f} +- {:.2f}".format(*_ratio(t, k, (1000, 10), (2000, 10)))
                for k in ("histogram binning", "scaling-binning")
            ),
            lambda t: all(
                abs(_ratio(t, k, (1000, 10), (2000, 10))[0] - 2) < 0.5 for k in ("histogram binning", "scaling-binning")
            ),
        ),
        "Figure 9, Theorem 4.1": (
            lambda t: ", ".join(
                "{:.2f} +- {:.2f}".format(*_ratio(t, k, (2000, 20), (2000, 5)))
                for k in ("histogram binning", "scaling-binning")
            ),
            lambda t: (
                _ratio(t, "histogram binning", (2000, 20), (2000, 5))[0] > 3
                and abs(_ratio(t, "scaling-binning", (2000, 20), (2000, 5))[0] - 1) < 0.25
            ),
        ),
        "Figure 10": (
            lambda t: f"{t['p_a'].min():.3f} to {t['p_a'].max():.3f}",
            lambda t: bool(np.all(np.diff(t["p_a"]) > 0)),
        ),
        "Figure 11": (lambda t: with_se(*_scaling_ratio(t), 1), lambda t: 3.5 < _scaling_ratio(t)[0] < 7),
        "Figure 12": (
            lambda t: (
                f"stand-in world, n = 1000: {_closer_words(t, 15)} times at 15 bins, {_closer_words(t, 100)} times at 100"
            ),
            lambda t: _closer(t, 100) > 1.2,
        ),
        "Figure 13": (
            lambda t: f"n = 1000: {_closer_words(t, 15)} times at 15 bins, {_closer_words(t, 100)} times at 100",
            lambda t: _closer(t, 100) > 1.2,
        ),
        "Figure 14": (
            lambda t: "100 bins: mean {:.2g} against {:.2g}".format(*_mean_deviation(t)),
            lambda t: _mean_deviation(t)[1] < 0.6 * _mean_deviation(t)[0],
        ),
        "Figure 15": (
            lambda t: "stand-in world, 100 bins: mean {:.2g} against {:.2g}".format(*_mean_deviation(t)),
            lambda t: _mean_deviation(t)[1] < _mean_deviation(t)[0],
        ),
        "Figure 16": (
            lambda t: "100 bins: mean {:.2g} against {:.2g}".format(*_mean_deviation(t)),
            lambda t: _mean_deviation(t)[1] < _mean_deviation(t)[0],
        ),
        "Figure 17": (
            lambda t: f"debiased {_most_bins(t, 'debiased')}, plug-in {_most_bins(t, 'plugin')}",
            lambda t: _most_bins(t, "debiased") > _most_bins(t, "plugin"),
        ),
        "Theorems 5.3, 5.4": (
            lambda t: f"n = 1000: {_closer_words(t, 100)} times closer at 100 bins",
            lambda t: _closer(t, 100) > _closer(t, 10),
        ),
    },
    {"no data": _NO_DATA},
)
