"""Peng, Alamzadeh and Ester, "Better calibration error estimation for reliable uncertainty quantification": every item (P)."""

from papers.page import Read, Row, items_of, mean_abs, mean_abs_with_se, only
from truecal.lab import Frame


def _peng(table: Frame, worlds: str, name: str, dataset: str = "all") -> Row:
    return only(table, worlds=worlds, dataset=dataset, estimator=name)[0]


def _with_se(row: Row) -> str:
    return f"{row['mean_bias']:+.3f} +- {row['mean_bias_se']:.3f} (m = {row['m']})"


def _by_n(table: Frame, worlds: str, name: str) -> float:
    return mean_abs(only(table, worlds=worlds, estimator=name), "bias_percent")


def _by_n_words(table: Frame, worlds: str, name: str) -> str:
    return mean_abs_with_se(only(table, worlds=worlds, estimator=name), "bias_percent", "bias_se")


_PUSHED = "the paper's recalibrated worlds are not printed: ours are push-forwards, or fitted to the outputs given with --data"
_MEANS = {
    ("uncalibrated", "all", "KNN"): -0.115,
    ("uncalibrated", "all", "SWEEP"): -0.281,
    ("uncalibrated", "all", "DEBIASED"): -0.521,
    ("uncalibrated", "all", "EW"): -1.210,
    ("uncalibrated", "CIFAR-10", "KNN"): -0.01,
    ("uncalibrated", "ImageNet", "KNN"): -0.03,
    ("recalibrated", "all", "KNN"): 0.676,
    ("recalibrated", "all", "SWEEP"): 1.422,
}


def _by_n_of(worlds: str) -> Read:
    def ours(table: Frame) -> str:
        return ", ".join(f"{n} {_by_n_words(table, worlds, n)}" for n in ("KNN", "SWEEP", "DEBIASED", "EW"))

    return ours, lambda t: _by_n(t, worlds, "KNN") < _by_n(t, worlds, "SWEEP")


def _mean_of(worlds: str, dataset: str, name: str) -> Read:
    def holds(table: Frame) -> bool:
        row = _peng(table, worlds, name, dataset)
        return abs(row["mean_bias"] - _MEANS[worlds, dataset, name]) < max(0.1, 4 * row["mean_bias_se"])

    return lambda t: _with_se(_peng(t, worlds, name, dataset)), holds


def _sure_shares(table: Frame) -> list[float]:
    return [float(row["share"]) for row in only(table, low=0.98)]


ITEMS = items_of(
    "peng",
    {
        "Figure 2": (
            lambda t: (
                f"recalibrated: SWEEP {_by_n_words(t, 'recalibrated', 'SWEEP')}, "
                f"DEBIASED {_by_n_words(t, 'recalibrated', 'DEBIASED')}"
            ),
            lambda t: (
                _by_n(t, "recalibrated", "SWEEP") > _by_n(t, "recalibrated", "DEBIASED")
                and _by_n(t, "uncalibrated", "SWEEP") < _by_n(t, "uncalibrated", "DEBIASED")
            ),
        ),
        "Figure 4": (
            lambda t: ", ".join(f"{r['network']} {r['share']:.2f}" for r in only(t, low=0.98)),
            lambda t: _sure_shares(t) == sorted(_sure_shares(t), reverse=True),
        ),
        "Figure 7": (
            lambda t: (
                "mean |bias|, recalibrated: "
                + ", ".join(
                    f"{n} {mean_abs_with_se(only(t, estimator=n), 'recalibrated_bias', 'recalibrated_se')}"
                    for n in ("KNN", "SWEEP", "DEBIASED")
                )
            ),
            lambda t: (
                mean_abs(only(t, estimator="KNN"), "recalibrated_bias")
                < mean_abs(only(t, estimator="SWEEP"), "recalibrated_bias")
            ),
        ),
        "Figure 8": _by_n_of("uncalibrated"),
        "Figure 9": _by_n_of("recalibrated"),
        **{f"section 4.2, {', '.join(place)}": _mean_of(*place) for place in _MEANS},
        "section 4.2, t-tests": (
            lambda t: (
                "t = "
                + ", ".join(f"{r['t']:.2f}" for r in t)
                + "; paired "
                + ", ".join(f"{r['t_paired']:.2f}" for r in t)
            ),
            lambda t: all(r["p_paired"] < 0.05 for r in t),
        ),
        "Equations 6 and 7": (
            lambda t: (
                "mean |bias|, uncalibrated / recalibrated: "
                + ", ".join(
                    f"{r['variant']} {r['mean_abs_bias']:.2f} / "
                    f"{only(t, worlds='recalibrated', variant=r['variant'])[0]['mean_abs_bias']:.2f}"
                    for r in only(t, worlds="uncalibrated")
                )
            ),
            None,
        ),
    },
    {"pushed": _PUSHED},
)
