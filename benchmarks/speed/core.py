"""Profile, estimators, lenses and import, against one numpy sort (or pass) and against other packages."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np

import truecal as tc
from benchmarks.speed.harness import Row, peak_extra_bytes, seconds, seconds_together

LARGE, MEDIUM = 10_000_000, 1_000_000
ALL = (
    tc.BinnedECE(),
    tc.BinnedECE(scheme="mass"),
    tc.estimators.LabelBinnedECE(),
    tc.DebiasedECE(),
    tc.SweepECE(),
    tc.NearestECE(),
    tc.estimators.KernelDensityECE(),
    tc.SmoothECE(),
    tc.estimators.IsotonicError(),
    tc.RankSeries(),
)


def data(n: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.random(n).astype(dtype)
    return scores, rng.random(n) < scores**1.1


def profiles_and_estimators() -> list[Row]:
    for estimator in ALL:  # scipy parts load on first use
        estimator(tc.profile.Profile.from_arrays(*data(1000, np.float64)))
    rows = []
    for dtype, bound in ((np.float64, 3.0), (np.float32, 3.5)):
        name = np.dtype(dtype).name
        c, y = data(LARGE, dtype)
        sort, build = seconds_together(lambda c=c: np.sort(c), lambda c=c, y=y: tc.profile.Profile.from_arrays(c, y))
        rows.append(Row(f"np.sort of 1e7 {name}", sort, 1.0, "itself"))
        rows.append(Row(f"profile of 1e7 {name}", build, build / sort, f"np.sort of the {name}", bound))
        extra = peak_extra_bytes(lambda c=c, y=y: tc.profile.Profile.from_arrays(c, y))
        rows.append(
            Row(
                f"  its peak memory ({extra / 2**20:.0f} MiB)",
                build,
                extra / (c.nbytes + y.nbytes),
                "the input's bytes",
                5.0,
            )
        )
        if dtype is np.float64:
            together = min(_all_once(tc.profile.Profile.from_arrays(c, y)) for _ in range(3))
            rows.append(
                Row("all estimators, given that profile", together, together / sort, "np.sort of the float64", 2.0)
            )
    c, y = data(MEDIUM, np.float64)
    profile = tc.profile.Profile.from_arrays(c, y)
    for estimator, limit in ((tc.SweepECE(), 0.2), (tc.NearestECE(), 5.0)):
        sort, once = seconds_together(lambda: np.sort(c), lambda e=estimator: e(profile))
        rows.append(
            Row(f"{type(estimator).__name__} given a profile of 1e6", once, once / sort, "np.sort of the 1e6", limit)
        )
    return rows


def _all_once(profile: tc.profile.Profile) -> float:
    return seconds(lambda: [estimator(profile) for estimator in ALL], repeat=1)


def peers_equal_mass() -> list[Row]:
    """Equal-mass calibration error of 1e7 float64 scores from the arrays, 15 bins."""
    c, y = data(LARGE, np.float64)
    y_int = y.astype(np.int64)

    def ours() -> object:
        return tc.BinnedECE(bins=15, scheme="mass")(tc.profile.Profile.from_arrays(c, y)).value

    rows = []
    for name, work, bound in peers_of_mass(c, y_int):
        mine, theirs = seconds_together(ours, work, repeat=2 if bound > 4 else 5)  # the slowest takes half a minute
        rows.append(
            Row(f"equal mass, 1e7: {name}", theirs, theirs / mine, "truecal, from the arrays", bound, at_least=True)
        )
    mine, sort = seconds_together(ours, lambda: np.sort(c), repeat=3)
    return [Row("equal mass, 1e7: truecal, from the arrays", mine, mine / sort, "np.sort of the 1e7"), *rows]


def peers_of_mass(c: np.ndarray, y: np.ndarray) -> list[tuple[str, Callable[[], object], float]]:
    peers: list[tuple[str, Callable[[], object], float]] = []
    try:
        from calzone.metrics import calculate_ece_mce
        from calzone.utils import reliability_diagram

        def calzone() -> object:
            two = np.stack([1 - c, c], axis=1)
            rates, scores, _, counts = reliability_diagram(y, two, num_bins=15, is_equal_freq=True, class_to_plot=1)
            return calculate_ece_mce(rates, scores, counts)

        peers.append(("calzone", calzone, 4.0))
    except ImportError:
        print("calzone is not installed: row left out", file=sys.stderr)
    try:
        from model_diagnostics.calibration import compute_bias

        peers.append(("model-diagnostics", lambda: compute_bias(y_obs=y, y_pred=c, feature=c, n_bins=15), 4.0))
    except ImportError:
        print("model-diagnostics is not installed: row left out", file=sys.stderr)
    try:
        import calibration

        peers.append(
            (
                "uncertainty-calibration",
                lambda: calibration.get_calibration_error(c, y, p=1, debias=False, mode="top-label"),
                50.0,
            )
        )
    except ImportError:
        print("uncertainty-calibration is not installed: row left out", file=sys.stderr)
    return peers


def wide_matrices() -> list[Row]:
    rng = np.random.default_rng(0)
    probs = rng.random((50_000, 1000), np.float32) ** 8
    probs /= probs.sum(axis=1, keepdims=True)
    labels = rng.integers(0, 1000, 50_000)
    preds = tc.Predictions.from_probs(probs, labels)

    def from_arrays() -> object:
        return tc.TopLabel()(tc.Predictions.from_probs(probs, labels))

    one_pass, lens, checked = seconds_together(lambda: probs.max(axis=1), lambda: tc.TopLabel()(preds), from_arrays)
    extra = peak_extra_bytes(from_arrays) / probs.nbytes
    rows = [
        Row("one max pass over 50,000 x 1000 float32", one_pass, 1.0, "itself"),
        Row("top-label profile of that matrix", lens, lens / one_pass, "one max pass", 3.0),
        Row("  with validation of every probability", checked, checked / one_pass, "one max pass"),
        Row("  its peak memory", checked, extra, "the matrix", 1.0),
    ]
    once = seconds(lambda: tc.measure(preds, lens=tc.ClassWise(), estimator=tc.BinnedECE()), repeat=1)
    gib = peak_extra_bytes(lambda: tc.measure(preds, lens=tc.ClassWise(), estimator=tc.BinnedECE())) / 2**30
    rows.append(
        Row(
            "class-wise error of that matrix: peak GiB", once, gib + probs.nbytes / 2**30, "1 GiB, matrix included", 1.0
        )
    )
    return rows


def importing() -> list[Row]:
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def start(module: str) -> float:
        return min(float(subprocess.check_output([sys.executable, "-c", code.format(module)])) for _ in range(5))

    ours, used, floor = start("truecal"), start("truecal; truecal.calibration_error"), start("numpy")
    return [
        Row("import truecal", ours, ours / 0.25, "0.25 s", 1.0),
        Row("import truecal and touch calibration_error", used, used / 0.25, "0.25 s", 1.0),
        Row("import numpy", floor, 1.0, "itself"),
    ]


def rows() -> list[Row]:
    return [*importing(), *profiles_and_estimators(), *wide_matrices(), *peers_equal_mass()]
