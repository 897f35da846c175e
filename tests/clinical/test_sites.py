"""Sites: every site as if alone, the differences between them, and what is refused."""

import numpy as np
import pytest

import truecal as tc
from tests.clinical.worlds import WORLDS
from truecal.clinical.cohort import Quantity
from truecal.clinical.summaries import pool_sites

RNG = np.random.default_rng(8)
P, Y, CLUSTERS = WORLDS[0].draw(RNG, 900, 3)
SITE = np.array(["a", "b", "c"])[np.arange(900) // 300]
SEX = np.array(["f", "m"])[np.arange(900) % 2]
PREDS = tc.Predictions.from_probs(P, Y, clusters=CLUSTERS, columns={"site": SITE, "sex": SEX})


def test_a_site_is_as_if_alone():
    summary = tc.clinical.summary(PREDS, by="site")
    assert summary.sites.names == ("a", "b", "c")
    alone = tc.clinical.summary(PREDS.take(SITE == "b"))
    b = summary.sites["b"]
    assert (b.rows, b.events, b.patients) == (300, alone.events, 100)
    assert (b.slope.value, b.slope.low, b.oe.high) == (alone.slope.value, alone.slope.low, alone.oe.high)
    assert (b.ici, b.emax, summary.ici) == (alone.ici, alone.emax, tc.clinical.summary(PREDS).ici)  # the same draws
    assert summary.sites.frame()["slope"][1] == alone.slope.value
    assert set(summary.sites.curves()["site"]) == {"a", "b", "c"}
    assert set(summary.to_dict()["sites"]["each"]) == {"a", "b", "c"}
    assert "mean over sites" in str(summary)
    both = tc.clinical.summary(PREDS, by=["site", "sex"])
    assert both.sites.names[0] == "a, f"
    with pytest.raises(tc.InputError, match="no site 'x'"):
        summary.sites["x"]


def test_where_the_site_is_the_cluster_its_rows_are_independent():
    by_site = tc.Predictions.from_probs(P, Y, clusters=SITE, columns={"site": SITE})
    inside = tc.clinical.summary(by_site, by="site").sites["a"]
    alone = tc.clinical.summary(tc.Predictions.from_probs(P[SITE == "a"], Y[SITE == "a"]))
    assert inside.slope.low == alone.slope.low


def test_a_site_without_events_is_left_out_by_name():
    y = np.where(SITE == "b", 0, Y)
    summary = tc.clinical.summary(tc.Predictions.from_probs(P, y, columns={"site": SITE}), by="site")
    assert "b" not in summary.sites.names
    assert summary.sites.left_out == {"b": 300}
    assert summary.sites["a"].slope.value == tc.clinical.summary(PREDS, by="site").sites["a"].slope.value
    assert any("site b, 300 rows, is left out of the sites" in warning for warning in summary.warnings)
    by_outcome = tc.Predictions.from_probs(P, Y, columns={"x": np.where(Y, "1", "0")})
    with pytest.raises(tc.InputError, match="x 0 has no events among its"):
        tc.clinical.summary(by_outcome, by="x")
    with pytest.raises(tc.InputError, match="no column 'ward'"):
        tc.clinical.summary(PREDS, by="ward")


def numbers(values, se):
    return [Quantity(v, v, v, 0.95, s, "test") for v, s in zip(values, se, strict=True)]


def test_pooling_by_hand():
    same = pool_sites(numbers([0.5, 0.5, 0.5], [0.1, 0.2, 0.3]), "plain", 0.95)
    assert same.pooled.value == pytest.approx(0.5)
    assert (same.tau, same.i2, same.p_value) == (0.0, 0.0, pytest.approx(1.0))
    values, se = np.array([0.1, 0.9, 0.4, 1.3]), np.full(4, 0.1)
    result = pool_sites(numbers(values, se), "plain", 0.95)
    assert result.pooled.value == pytest.approx(values.mean())
    assert result.tau == pytest.approx(
        np.sqrt(values.var(ddof=1) - 0.01)
    )  # equal errors: Paule and Mandel in closed form
    q = (((values - values.mean()) / 0.1) ** 2).sum()
    assert result.i2 == pytest.approx((q - 3) / q)
    assert result.low < result.pooled.low < result.pooled.high < result.high
    ratios = pool_sites(numbers([0.5, 2.0], [0.05, 0.2]), "log", 0.95)
    assert ratios.pooled.value == pytest.approx(1.0)
    assert pool_sites(numbers([0.5], [0.1]), "plain", 0.95) is None


def test_differences_between_sites_are_found():
    shift = np.array([0.0, 0.8, -0.8])[np.arange(900) // 300]
    q = 1 / (1 + np.exp(-(np.log(P / (1 - P)) + shift)))
    y = (np.random.default_rng(0).random(900) < q).astype(int)
    summary = tc.clinical.summary(tc.Predictions.from_probs(P, y, columns={"site": SITE}), by="site")
    spread = summary.sites.heterogeneity["intercept"]
    assert spread.p_value < 0.001
    assert spread.i2 > 0.7
