"""Roelofs, Cain, Shlens and Mozer, "Mitigating bias in calibration error estimation" (2022): every numbered item (R)."""

import numpy as np

from papers.page import Row, items_of, mean, mean_abs, mean_abs_with_se, only, with_se
from truecal.lab import Frame


def _mode(table: Frame) -> float:
    part = only(table, panel="ECE of samples")
    return float(sum(r["share"] * (r["low"] + r["high"]) / 2 for r in part))


def _disagree(table: Frame) -> float:
    return mean(only(table, rows="tenth", bins=15), "disagree")


def _right(table: Frame, metric: str) -> str:
    rows = only(table, metric=metric)
    spread = float(np.sqrt(sum(row["right_se"] ** 2 for row in rows))) / len(rows)
    return f"{mean(rows, 'right_share'):.0%} +- {spread:.0%}"


def _bias_6(table: Frame, name: str) -> float:
    return 100 * mean_abs(only(table, n=200, estimator=name), "bias")


def _bias_6_words(table: Frame, name: str) -> str:
    return mean_abs_with_se(only(table, n=200, estimator=name), "bias", "bias_se", 100)


def _power_8(table: Frame, name: str, n: int) -> float:
    return float(only(table, estimator=name, true_error=0.02, n=n)[0]["power"])


def _power_8_words(table: Frame, name: str) -> str:
    (row,) = only(table, estimator=name, true_error=0.02, n=10_000)
    return with_se(row["power"], row["power_se"])


def _best_scheme_words(table: Frame, scheme: str) -> str:
    return mean_abs_with_se(only(table, metric="BIN", scheme=scheme), "bias_percent", "bias_se")


def _best_scheme(table: Frame, scheme: str) -> float:
    return mean_abs(only(table, metric="BIN", scheme=scheme), "bias_percent")


def _spread(table: Frame, n: int) -> tuple[Row, Row]:
    """The rows of the smallest and the largest standard deviation of equal-mass bins."""
    rows = sorted(only(table, metric="BIN", scheme="mass", n=n), key=lambda row: float(row["std_percent"]))
    return rows[0], rows[-1]


def _tab1(table: Frame) -> Row:
    return (only(table, world="resnet110_c10", reading="as printed") or [table[0]])[0]


def _tab3(table: Frame, reading: str) -> Row:
    return (only(table, world="resnet110_c10", reading=reading) or only(table, world="resnet110_c10"))[0]


def _tab3_words(table: Frame) -> str:
    printed, more = (_tab3(table, reading) for reading in ("as printed", "as printed, more datasets"))
    parts = [f"{r['simulated_percent']:.2f} +- {r['simulated_se']:.2f} (m = {r['m']})" for r in (printed, more)]
    return ", ".join([f"{printed['ece_percent'] or float('nan'):.2f}", *parts])


def _pair(table: Frame) -> str:
    return f"{table[0]['EW_percent']:.2f} / {table[0]['EMsweep_percent']:.2f}"


def _near(table: Frame, ew: float, sweep: float, slack: float) -> bool:
    return abs(table[0]["EW_percent"] - ew) <= slack and abs(table[0]["EMsweep_percent"] - sweep) <= slack


ITEMS = items_of(
    "roelofs",
    {
        "Figure 1": (lambda t: f"mean {_mode(t):.1f} %", lambda t: _mode(t) > 4),
        "Figure 2": (lambda t: f"{_disagree(t):.0%}, one network", lambda t: _disagree(t) > 0),
        "Figure 2, truth known": (
            lambda t: ", ".join(f"{name} {_right(t, name)}" for name in ("EW", "EMsweep", "debiased", "RankSeries")),
            None,
        ),
        "Figure 3": (lambda t: f"largest gap {t['gap'].max():.3f}", lambda t: abs(t["gap"].max() - 0.25) < 1e-3),
        "Figure 4": (
            lambda t: (
                f"mean difference {mean_abs(t, 'difference'):.2f}, largest {max(abs(r['difference']) for r in t):.2f}"
            ),
            lambda t: mean_abs(t, "difference") < 0.2,
        ),
        "Figure 5a, 5b": (lambda t: f"{len(set(t['world']))} networks", lambda t: len(set(t["world"])) == 10),
        "Figure 6": (
            lambda t: ", ".join(f"{n} {_bias_6_words(t, n)}" for n in ("EW", "EM", "EMdebias", "KDE", "EMsweep")),
            lambda t: all(_bias_6(t, "EMsweep") < _bias_6(t, n) for n in ("EW", "EM", "EMdebias", "KDE", "EWsweep")),
        ),
        "Figure 6, KDE": (
            lambda t: ", ".join(
                f"{words} {100 * row['bias']:+.2f} +- {100 * row['bias_se']:.2f}"
                for words, name in (("theirs", "KDE, authors' bandwidth"), ("ours", "KDE"))
                for row in only(t, world="resnet110_c100", n=200, estimator=name)
            ),
            None,
        ),
        "Figure 7": (
            lambda t: (
                "EW, uniform, n = 200, calibrated: +"
                + next(
                    with_se(100 * row["bias"], 100 * row["bias_se"])
                    for row in only(t, world="Uniform d=1", estimator="EW", n=200)
                )
            ),
            lambda t: (
                only(t, world="Uniform d=1", estimator="EW", n=200)[0]["bias"]
                > only(t, world="Uniform d=3", estimator="EW", n=200)[0]["bias"]
            ),
        ),
        "Figure 8, section 5.4": (
            lambda t: f"power at 10,000: EW {_power_8_words(t, 'EW')}, EMsweep {_power_8_words(t, 'EMsweep')}",
            lambda t: _power_8(t, "EW", 2000) < 0.5 < 0.7 < _power_8(t, "EW", 10_000) <= _power_8(t, "EMsweep", 10_000),
        ),
        **dict.fromkeys(
            ("Figure 9", "Figure 10", "Figure 11"),
            (
                lambda t: f"mean |bias| width {_best_scheme_words(t, 'width')}, mass {_best_scheme_words(t, 'mass')}",
                lambda t: _best_scheme(t, "mass") < _best_scheme(t, "width"),
            ),
        ),
        **dict.fromkeys(
            ("Figure 12", "Figure 13", "Figure 14"),
            (
                lambda t: (
                    "n = 800: " + " to ".join(with_se(row["std_percent"], row["std_se"]) for row in _spread(t, 800))
                ),
                lambda t: _spread(t, 800)[1]["std_percent"] < 2 * _spread(t, 800)[0]["std_percent"],
            ),
        ),
        "Figure 15": (
            lambda t: "uncalibrated, n = 5000: {} bins".format(
                next(with_se(r["sweep_bins"], r["sweep_bins_se"], 1) for r in only(t, world="uncalibrated", n=5000))
            ),
            lambda t: 5 < only(t, world="uncalibrated", n=5000)[0]["sweep_bins"] < 30,
        ),
        "Table 1": (
            lambda t: f"{_tab1(t)['alpha']:.4f}, {_tab1(t)['beta']:.4f}",
            lambda t: abs(_tab1(t)["alpha"] - 2.7752) < 6e-5 and abs(_tab1(t)["beta"] - 0.0478) < 6e-5,
        ),
        "Table 2": (
            lambda t: next(
                f"{r['b0']:.2f}, {r['b1']:.2f}; AIC {r['aic_bootstrap'] or r['aic']:.0f} +- {r['aic_bootstrap_se'] or 0:.0f}"
                for r in t
                if r["curve"] == "logflip_logflip_b0_b1"
            ),
            lambda t: all(
                abs(r["b1"] - r["paper_b1"]) < 0.3
                for r in only(t, world="resnet110_c10", reading="as printed")
                if r["paper_b1"]
            ),
        ),
        "Table 3": (
            _tab3_words,
            lambda t: (
                abs((_tab3(t, "as printed")["ece_percent"] or 0) - 6.67) < 0.005
                and abs(_tab3(t, "as printed")["simulated_percent"] - 8.42) < 0.005
            ),
        ),
        "Table 4": (_pair, lambda t: _near(t, 4.75, 4.75, 0.005)),
        "Table 5": (_pair, lambda t: _near(t, 1.13, 0.91, 0.005)),
        "Table 6": (_pair, lambda t: _near(t, 1.47, 0.93, 0.01)),
        "Table 7": (_pair, lambda t: _near(t, 0.84, 0.67, 0.02)),
    },
)
