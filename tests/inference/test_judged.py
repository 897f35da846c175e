"""Few trusted labels and many judged ones: oracles, equality without missing labels, coverage, refusals."""

import numpy as np
import pytest

import truecal as tc
from truecal.judged import JudgedSeries


def draw(rows, trusted, accuracy, seed=0, power=1.5):
    rng = np.random.default_rng(seed)
    c = rng.random(rows)
    y = (rng.random(rows) < c**power).astype(float)
    judge = np.where(rng.random(rows) < accuracy, y, 1 - y)
    labels = np.full(rows, np.nan)
    chosen = rng.choice(rows, trusted, replace=False)
    labels[chosen] = y[chosen]
    return c, y, judge, labels


def test_all_labels_trusted_is_the_default():
    c, y, judge, _ = draw(800, 10, 0.9)
    selected, plain = tc.calibration_error(y, c, judge=judge), tc.calibration_error(y, c)
    assert (selected.value, selected.interval) == (plain.value, plain.interval)


def test_two_columns_are_judged_as_their_second():
    c, _, judge, labels = draw(400, 60, 0.9)
    one, two = (tc.calibration_error(labels, probs, judge=judge) for probs in (c, np.stack([1 - c, c], axis=1)))
    assert (one.value, one.interval, one.p_value) == (two.value, two.interval, two.p_value)


def test_coefficients_and_covariance_match_naive_loops():
    c, _, judge, labels = draw(120, 40, 0.8)
    series = JudgedSeries.of(tc.Predictions.from_probs(c, labels, judge=judge))
    phi, (everywhere, out_of_fold) = series.functions, series.rows.predicted
    np.testing.assert_allclose(phi.T @ phi / len(c), np.eye(phi.shape[1]), atol=1e-12)
    rows, trusted, n = len(c), series.rows.trusted, len(series.rows.trusted)
    added = n / sum((labels[i] - c[i]) ** 2 for i in trusted)

    def cov(a, b):
        ma, mb = sum(a) / n, sum(b) / n
        return sum((s - ma) * (t - mb) for s, t in zip(a, b, strict=True)) / n / (n - 1)

    with_judge = [[phi[i, k] * (labels[i] - out_of_fold[j]) for j, i in enumerate(trusted)] for k in range(len(phi.T))]
    without = [[phi[i, k] * (labels[i] - c[i]) for i in trusted] for k in range(len(phi.T))]
    for k in range(len(phi.T)):
        beta = sum(phi[i, k] * (everywhere[i] - c[i]) for i in range(rows)) / rows + sum(with_judge[k]) / n
        assert series.means.values[k] == pytest.approx(beta, abs=1e-12)
        for j in range(k + 1):
            label, row = cov(with_judge[k], with_judge[j]), cov(without[k], without[j])
            covariance = (n * (label * (1 - n / rows) + row * n / rows) + added * row) / (n + added)
            assert series.means.covariance[k, j] == pytest.approx(covariance, abs=1e-12)


def test_a_good_judge_shortens_the_interval_and_noise_does_not_lengthen_it():
    widths = {}
    for accuracy in (0.5, 0.9):
        ratios = []
        for seed in range(6):
            c, _, judge, labels = draw(3000, 300, accuracy, seed)
            alone = tc.calibration_error(labels[~np.isnan(labels)], c[~np.isnan(labels)])
            both = tc.calibration_error(labels, c, judge=judge)
            ratios.append((both.interval.high - both.interval.low) / (alone.interval.high - alone.interval.low))
            assert both.interval.low <= both.value <= both.interval.high
        widths[accuracy] = np.mean(ratios)
    assert widths[0.9] < 0.8
    assert widths[0.5] < 1.02


def test_a_judge_of_noise_leaves_the_answer_of_the_trusted_labels():
    c, _, _, labels = draw(1000, 100, 0.5)
    noise, trusted = np.random.default_rng(5).integers(0, 2, 1000), ~np.isnan(labels)
    both, alone = tc.calibration_error(labels, c, judge=noise), tc.calibration_error(labels[trusted], c[trusted])
    assert (both.value, both.interval, both.p_value) == (alone.value, alone.interval, alone.p_value)
    assert (both.n, both.trusted, both.worth) == (1000, 100, 100)
    other = 0.9 * c + 0.05
    selected, plain = tc.compare(labels, c, other, judge=noise), tc.compare(labels[trusted], c[trusted], other[trusted])
    assert (selected.difference, selected.interval) == (plain.difference, plain.interval)


def test_equal_trusted_labels_answer_alone(tmp_path):
    c, _, judge, labels = draw(400, 100, 0.9)
    labels = np.where(np.isnan(labels), np.nan, 1.0)
    both = tc.calibration_error(labels, c, judge=judge)
    alone = tc.calibration_error(np.ones(100), c[~np.isnan(labels)], classes=[0, 1])
    assert (both.value, both.interval.low, both.interval.high) == (alone.value, alone.interval.low, alone.interval.high)
    assert (both.trusted, both.worth) == (100, 100)
    assert both.accuracy == pytest.approx((1.0, 0.025**0.01, 1.0))  # exact: the rate whose 100 rows are all 1 in 2.5 %
    page = tc.report(tc.Predictions.from_probs(c, labels, judge=judge), tmp_path / "page.html")
    assert "<td>none</td>" in page.read_text(encoding="utf-8")


def test_the_answer_states_accuracy_worth_and_its_assumption():
    c, y, judge, labels = draw(5000, 400, 0.95)
    estimate = tc.calibration_error(labels, c, judge=judge)
    assert estimate.trusted == 400
    assert 800 < estimate.worth <= 5000
    assert estimate.accuracy[1] <= y.mean() <= estimate.accuracy[2]
    assert any("random sample" in note for note in estimate.warnings)
    assert estimate.curve is not None
    assert np.abs(estimate.curve.outcome - estimate.curve.score**1.5).max() < 0.15
    assert "worth" in str(estimate)


def test_sampling_weights_undo_a_choice_by_score():
    rng = np.random.default_rng(3)
    c, y, judge, _ = draw(20_000, 10, 0.7, power=2)
    chance = 0.02 + 0.1 * (c > 0.7)
    labels = np.where(rng.random(len(c)) < chance, y, np.nan)
    true = np.sqrt(np.mean((c**2 - c) ** 2))
    estimate = tc.calibration_error(labels, c, judge=judge, sample_weight=1 / chance)
    assert estimate.interval.low <= true <= estimate.interval.high
    assert estimate.effective_n < estimate.trusted


def test_several_judges_probabilities_and_clusters():
    c, y, judge, labels = draw(3000, 300, 0.8)
    rng = np.random.default_rng(1)
    second = np.clip(0.7 * y + 0.15 + rng.normal(0, 0.1, len(y)), 0, 1)
    one = tc.calibration_error(labels, c, judge=judge)
    two = tc.calibration_error(labels, c, judge=np.column_stack([judge, second]))
    assert two.worth > one.worth
    clusters = np.arange(3000) // 3
    assert tc.calibration_error(labels, c, judge=judge, clusters=clusters).interval.high > 0


def test_two_models_on_the_same_judged_rows():
    c, _, judge, labels = draw(4000, 400, 0.9)
    raw, better = (tc.Predictions.from_probs(p, labels, judge=judge) for p in (c, c**1.5))
    comparison = tc.compare(raw, better)
    assert comparison.interval.low > 0
    assert comparison.p_value < 0.01
    assert comparison.value_a == tc.measure(raw).value
    arrays = tc.compare(labels, c, c**1.5, judge=judge)
    assert (arrays.difference, arrays.interval) == (comparison.difference, comparison.interval)
    assert (tc.compare(raw, raw).difference, tc.compare(raw, raw).p_value) == (0, 1)
    clusters = np.arange(4000) // 4
    clustered = [tc.Predictions.from_probs(p, labels, judge=judge, clusters=clusters) for p in (c, c**1.5)]
    assert tc.compare(*clustered).interval.low > 0


def test_comparisons_with_a_judge_refuse_what_does_not_fit():
    c, _, judge, labels = draw(400, 100, 0.9)
    preds = tc.Predictions.from_probs(c, labels, judge=judge)
    other = tc.Predictions.from_probs(c, np.roll(labels, 1), judge=judge)
    with pytest.raises(tc.InputError, match="label the same rows"):
        tc.compare(preds, other)
    with pytest.raises(tc.InputError, match="same trusted rows"):
        tc.compare(preds, tc.Predictions.from_probs(c, judge > 0))
    with pytest.raises(tc.InputError, match="row by row"):
        tc.compare(preds, preds, paired=False)
    with pytest.raises(tc.InputError, match="leave out estimator"):
        tc.compare(preds, preds, estimator=tc.BinnedECE())


def compare_calibrated(datasets):
    """How often no difference is rejected at 5 % where both models have the same error."""
    rejected = 0
    for seed in range(datasets):
        c, _, judge, labels = draw(2000, 200, 0.9, seed)
        noise = np.random.default_rng(seed + 1000).normal(0, 1e-3, len(c))
        rejected += tc.compare(labels, c, np.clip(c + noise, 0, 1), judge=judge).p_value <= 0.05
    return rejected / datasets


def test_equal_models_rarely_differ():
    assert compare_calibrated(20) <= 0.2


def test_refusals_name_the_remedy():
    c, y, judge, labels = draw(200, 100, 0.9)
    with pytest.raises(tc.InputError, match="no row has a trusted label"):
        tc.calibration_error(np.full(200, np.nan), c, judge=judge)
    with pytest.raises(tc.InputError, match="label more rows"):
        tc.calibration_error(np.where(np.arange(200) < 10, y, np.nan), c, judge=judge)
    with pytest.raises(tc.InputError, match="one verdict for each"):
        tc.calibration_error(labels, c, judge=judge[:10])
    with pytest.raises(tc.InputError, match="judge"):
        tc.calibration_error(labels, c, judge=judge + 0.5)
    preds = tc.Predictions.from_probs(c, labels, judge=judge)
    for call in (tc.verify, tc.decision_loss, tc.scores.brier, tc.clinical.summary):
        with pytest.raises(tc.InputError, match="trusted"):
            call(preds, 0.1) if call is tc.verify else call(preds)
    with pytest.raises(tc.InputError, match="leave out estimator"):
        tc.measure(preds, estimator=tc.BinnedECE())


def simulate(datasets, accuracy, power):
    true = np.sqrt(np.mean([(c**power - c) ** 2 for c in (np.arange(10**5) + 0.5) / 10**5]))
    inside = rejected = 0
    for seed in range(datasets):
        c, _, judge, labels = draw(2000, 200, accuracy, seed, power)
        estimate = tc.calibration_error(labels, c, judge=judge, level=0.9)
        inside += estimate.interval.low <= true <= estimate.interval.high
        rejected += estimate.p_value <= 0.05
    return inside / datasets, rejected / datasets


def test_intervals_cover_in_a_few_datasets():
    assert simulate(40, 0.9, 1.5)[0] >= 0.8
    inside, rejected = simulate(40, 0.9, 1.0)
    assert inside >= 0.8
    assert rejected <= 0.15


def test_an_accurate_judge_covers_a_curve_with_a_step():
    grid = (np.arange(10**5) + 0.5) / 10**5
    true, inside = np.sqrt(np.mean((np.where(grid < 0.5, 0.6 * grid, 0.4 + 0.6 * grid) - grid) ** 2)), 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        c = rng.random(2000)
        y = (rng.random(2000) < np.where(c < 0.5, 0.6 * c, 0.4 + 0.6 * c)).astype(float)
        judge, labels = np.where(rng.random(2000) < 0.98, y, 1 - y), np.where(np.arange(2000) < 200, y, np.nan)
        interval = tc.calibration_error(labels, c, judge=judge, level=0.9).interval
        inside += interval.low <= true <= interval.high
    assert inside >= 23


@pytest.mark.full
@pytest.mark.parametrize("accuracy", [0.7, 0.98])
def test_intervals_cover(accuracy):
    assert 0.86 <= simulate(300, accuracy, 1.5)[0] <= 0.97
    inside, rejected = simulate(300, accuracy, 1.0)
    assert inside >= 0.86
    assert 0.02 <= rejected <= 0.09
