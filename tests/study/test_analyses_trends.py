"""Shift, in and out, residuals, recalibration, and the trend that bins make."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import truecal as tc
from tests.study.results import frame_of, number, random_study, study

METRIC = "rank-series-l2"

# ------------------------------------------------------------------ recalibration


def recalibrated(n_after=800, after=(0.02, 0.09), error_after=(0.1, 0.2)):
    def one(name, model, i, value, error, n):
        more = {"recalibrator": name, "n": n}
        return [
            number(model, METRIC, value, low=value - 0.01, high=value + 0.01, **more),
            number(model, "error", error, **more),
        ]

    rows = []
    for i, (before, error) in enumerate(((0.06, 0.1), (0.05, 0.2))):
        rows += one("none", f"m{i}", i, before, error, 800)
        rows += one("temperature", f"m{i}", i, after[i], error_after[i], n_after)
    return frame_of(rows)


def test_effect_of_recalibration():
    analysis = tc.study.effect_of_recalibration(recalibrated())
    table = analysis.frame()
    assert table["change"].to_list() == pytest.approx([-0.04, 0.04])
    assert table["supported"].to_list() == [True, True]
    assert analysis.notes == ("'temperature' made rank-series-l2 worse beyond the intervals (m1 on digits)",)
    summary = analysis.frame("summary").row(0, named=True)
    assert (summary["models"], summary["improved"], summary["improved_supported"]) == (2, 1, 1)
    assert summary["after"] == pytest.approx(0.055)
    assert summary["tau"] == -1
    close = tc.study.effect_of_recalibration(recalibrated(after=(0.05, 0.06)))
    assert close.frame()["supported"].to_list() == [False, False]


def test_recalibration_on_other_rows_is_told():
    analysis = tc.study.effect_of_recalibration(recalibrated(n_after=1000, error_after=(0.1, 0.25)))
    assert any("were judged on different rows: not the effect alone (on digits)" in note for note in analysis.notes)
    assert any("changed the classification error (m1 on digits)" in note for note in analysis.notes)
    with pytest.raises(tc.InputError, match="no recalibrator 'isotonic'"):
        tc.study.effect_of_recalibration(recalibrated(), after="isotonic")


# ------------------------------------------------------------------ shift


def test_shift_over_severities():
    frame = random_study(9, severities=(0.0, 1.0, 3.0))
    analysis = tc.study.shift(frame)
    table = analysis.frame()
    assert table.height == 27
    clean = table.filter(pl.col("severity") == 0).select("model", clean="value", clean_error="error")
    beside = table.join(clean, on="model", maintain_order="left")
    assert (beside["value"] - beside["clean"]).to_list() == pytest.approx((0.02 * table["severity"]).to_list())
    assert (beside["error"] - beside["clean_error"]).to_list() == pytest.approx((0.05 * table["severity"]).to_list())
    assert table["types"].unique().to_list() == [1]
    assert table["value_low"].null_count() == 27  # one type of shift leaves no interval
    slopes = analysis.frame("slopes")
    assert slopes["slope"].to_list() == pytest.approx([0.02] * 9)
    assert slopes["error_slope"].to_list() == pytest.approx([0.05] * 9)
    for row in table.iter_rows(named=True):
        peers = table.filter((pl.col("family") == row["family"]) & (pl.col("severity") == row["severity"]))
        largest = peers.sort("size").row(-1, named=True)
        assert row["value_beside_largest"] == pytest.approx(row["value"] - largest["value"])
        assert row["error_beside_largest"] == pytest.approx(row["error"] - largest["error"])
    by_size = tc.study.covariate_trend(frame, "size").frame("trends").filter(pl.col("family").is_not_null())
    assert by_size.height == 9  # three families, three severities
    first = by_size.row(0, named=True)
    peers = table.filter((pl.col("family") == first["family"]) & (pl.col("severity") == first["severity"]))
    assert first["tau"] == pytest.approx(stats.kendalltau(peers["size"], peers["value"])[0])


def test_shift_with_a_clean_dataset_of_another_name():
    clean = random_study(4, dataset="digits")
    noisy = random_study(5, dataset="noisy", severities=(2.0,))
    both = pl.concat([clean, noisy])
    analysis = tc.study.shift(both, reference="digits")
    assert sorted(analysis.frame()["severity"].unique()) == [0, 2]
    assert analysis.frame()["dataset"].unique().to_list() == ["digits"]
    assert analysis.frame("slopes")["model"].to_list() == [f"m{i}" for i in range(4)]  # m4 has no clean number
    same = tc.study.shift(both, reference={"noisy": "digits"})
    assert same.frame().equals(analysis.frame())
    with pytest.raises(tc.InputError, match="name the clean dataset as reference"):
        tc.study.shift(both)
    with pytest.raises(tc.InputError, match="no severity above 0"):
        tc.study.shift(clean)


# ------------------------------------------------------------------ in and out


def test_in_and_out():
    rng = np.random.default_rng(0)
    inside, outside, errors = rng.random(12), rng.random(12), rng.random((2, 12))
    clean = study(errors[0], {METRIC: inside}, half=0.01, dataset="clean")
    street = study(errors[1], {METRIC: outside}, half=0.01, dataset="street")
    analysis = tc.study.in_and_out(pl.concat([clean, street]), reference="clean")
    table = analysis.frame().with_columns(pl.col("model").str.slice(1).cast(int).alias("i")).sort("i")
    assert table["inside"].to_list() == inside.tolist()
    assert table["outside"].to_list() == outside.tolist()
    pairs = {
        "metric in, metric out": (inside, outside),
        "error in, error out": tuple(errors),
        "error out, metric out": (errors[1], outside),
    }
    drawn = analysis.frame("correlations")
    assert drawn.height == 3
    for row in drawn.iter_rows(named=True):
        assert row["tau"] == pytest.approx(stats.kendalltau(*pairs[row["pair"]])[0])
        assert row["tau_low"] < row["tau"] < row["tau_high"]
    assert any("does not predict" in note for note in analysis.notes)
    with pytest.raises(tc.InputError, match="no shifted data"):
        tc.study.in_and_out(clean)


def test_in_and_out_of_every_severity():
    analysis = tc.study.in_and_out(random_study(12, severities=(0.0, 1.0, 2.0)))
    taus = analysis.frame("correlations").filter(pl.col("pair") == "metric in, metric out")
    assert taus.select("severity", "tau").rows() == [
        (1, pytest.approx(1)),
        (2, pytest.approx(1)),
    ]  # every model shifts alike
    assert not any("predict" in note for note in analysis.notes)


# ------------------------------------------------------------------ residuals


def test_residuals_of_scores():
    rng = np.random.default_rng(1)
    error = rng.uniform(0.05, 0.4, 12)
    nll, brier = 3 * error + rng.normal(0, 0.1, 12), 1.4 * error + 0.02
    analysis = tc.study.residuals(study(error, {"nll": nll, "brier": brier}))
    table = analysis.frame().filter(pl.col("metric") == "nll").with_columns(i=pl.col("model").str.slice(1).cast(int))
    fit = stats.linregress(error, nll)
    expected = nll - fit.intercept - fit.slope * error
    assert table.sort("i")["residual"].to_list() == pytest.approx(expected.tolist())
    assert table["residual"].sum() == pytest.approx(0, abs=1e-12)
    hat = np.column_stack([np.ones(12), error])
    leverage = np.diag(hat @ np.linalg.inv(hat.T @ hat) @ hat.T)
    scale = np.sqrt((expected**2).sum() / 10 * (1 - leverage))
    assert table.sort("i")["standardized"].to_list() == pytest.approx((expected / scale).tolist())
    lines = {row["metric"]: row for row in analysis.frame("lines").iter_rows(named=True)}
    assert lines["nll"]["explained"] == pytest.approx(fit.rvalue**2)
    assert lines["brier"]["slope"] == pytest.approx(1.4)
    few = tc.study.residuals(study([0.1, 0.2, 0.3], {"nll": [0.3, 0.5, 0.8]}), metrics=["nll"])
    assert any("3 models are too few for residuals" in note for note in few.notes)
    same = tc.study.residuals(study([0.1] * 5, {"nll": [0.1, 0.2, 0.3, 0.4, 0.5]}), metrics="nll")
    assert np.isnan(same.frame("lines")["slope"][0])


# ------------------------------------------------------------------ the bias of bins (Minderer et al. 2021, eq. 5)


def naive_bin_bias(c, y, bins):
    """Sample moments bin by bin, rows sorted by confidence."""
    order = np.argsort(c, kind="stable")
    total = 0.0
    for part in np.array_split(order, bins):
        a, p = y[part].astype(float), c[part]
        if len(part) > 1:
            moments = np.var(a, ddof=1) + np.var(p, ddof=1) - 2 * np.cov(a, p, ddof=1)[0, 1]
            total += len(part) / len(c) * moments / len(part)
    return total


def total_bias(profile, bins):
    """The bias that the exact correction takes from the squared error of equal-mass bins."""
    plug_in = tc.BinnedECE(bins=bins, scheme="mass", norm=2)(profile).power
    return float(plug_in - tc.DebiasedECE(bins=bins, correction="exact")(profile).power)


def test_bias_of_bins_is_the_formula():
    rng = np.random.default_rng(2)
    c = rng.beta(3, 1, 900)
    y = rng.random(900) < c**1.2
    profile = tc.profile.Profile.from_arrays(c, y)
    for bins in (1, 9, 90):
        assert total_bias(profile, bins=bins) == pytest.approx(naive_bin_bias(c, y, bins), abs=1e-14)
    twice = tc.profile.Profile.from_arrays(np.repeat(c, 2), np.repeat(y, 2))
    weighted = tc.profile.Profile.from_arrays(c, y, np.full(900, 2))
    assert total_bias(weighted, bins=30) == pytest.approx(total_bias(twice, bins=30))


def test_bias_of_bins_is_what_simulation_shows():
    """Bins [0, 0.5), [0.5, 1]: mean excess of the squared gap over 20,000 draws against eq. 5, within 4 standard errors."""
    rng = np.random.default_rng(3)
    m, n = 20_000, 40
    for low in (0.0, 0.5):
        c = low + 0.5 * rng.random((m, n))
        y = rng.random((m, n)) < c**2
        grid = low + (np.arange(100_000) + 0.5) / 200_000
        truth = (grid**2).mean() - grid.mean()
        variance_a = (grid**2).mean() * (1 - (grid**2).mean())
        covariance = (grid**3).mean() - grid.mean() * (grid**2).mean()
        exact = (variance_a + grid.var() - 2 * covariance) / n
        excess = (y.mean(axis=1) - c.mean(axis=1)) ** 2 - truth**2
        assert abs(excess.mean() - exact) < 4 * excess.std() / np.sqrt(m)
        values = [total_bias(tc.profile.Profile.from_arrays(c[i], y[i]), bins=1) for i in range(400)]
        assert abs(np.mean(values) - exact) < 4 * np.std(values) / 20


def simulated_study(models=24, n=10_000, gap=0.03, seed=4):
    """Models of equal true error (outcomes happen with probability c - gap) and classification errors from 0.05 to 0.4."""
    rng = np.random.default_rng(seed)
    rows = []
    estimators = {
        f"ece-mass-{b}-l{p}": tc.BinnedECE(bins=b, scheme="mass", norm=p) for b in (5, 15, 100, 500) for p in (1, 2)
    }
    estimators |= {"debiased-15-l2": tc.DebiasedECE(15), "exact-100-l2": tc.DebiasedECE(100, correction="exact")}
    estimators |= {"rank-series-l2": tc.RankSeries()}
    for i, mean in enumerate(np.linspace(0.63, 0.98, models)):
        shape = (mean - 0.5) / (1 - mean)
        c = 0.5 + 0.5 * rng.beta(2 * shape, 2, n)
        y = rng.random(n) < c - gap
        profile = tc.profile.Profile.from_arrays(c, y)
        rows += [number(f"m{i}", name, float(est(profile)), n=n) for name, est in estimators.items()]
        rows.append(number(f"m{i}", "error", 1 - y.mean(), n=n))
    return frame_of(rows)


@pytest.mark.slow
def test_many_bins_show_a_trend_that_is_not_there():
    """24 models of true error 0.03 whatever their accuracy, 10,000 rows each.

    Slope on the classification error, with its 95 % interval: above 0.02 for 100 bins and above 0.1 for 500; for the debiased error
    and the rank series below 0.01 in size, with 0 inside.
    """
    frame = simulated_study()
    analysis = tc.study.bin_trend(frame)
    slopes = {row["metric"]: row for row in analysis.frame().iter_rows(named=True)}
    for norm in ("l1", "l2"):
        assert slopes[f"ece-mass-100-{norm}"]["low"] > 0.02
        assert slopes[f"ece-mass-500-{norm}"]["low"] > 0.1
    for name in ("debiased-15-l2", "rank-series-l2"):
        assert abs(slopes[name]["slope"]) < 0.01
        assert slopes[name]["low"] < 0 < slopes[name]["high"]
    assert any("ece-mass-500-l1 rises with error, but not debiased-15-l2" in note for note in analysis.notes)
    tau = tc.study.error_against_calibration(frame, metric="ece-mass-500-l1").frame("trends")["tau"][0]
    assert tau > 0.8
    assert abs(tc.study.error_against_calibration(frame).frame("trends")["tau"][0]) < 0.3
