"""Many datasets on the same rows: intervals that cover the truth, also of calibrated models; clusters and blocks."""

import numpy as np
import pytest
from scipy.stats import binomtest

import truecal as tc
from truecal.estimators.bins import folded_mean


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class Classes:
    """K classes from normal logits, labels drawn from their softmax, scores sharpened by a power."""

    def __init__(self, count, power, seed):
        self.count, self.power = count, power
        self.rng = np.random.default_rng(seed)

    def draw(self, n):
        z = self.rng.normal(size=(n, self.count)) * 2
        truth = softmax(z)
        labels = (self.rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, self.count - 1)
        return truth, softmax(z * self.power), labels

    def error(self):
        """Class-wise mean absolute error of 400,000 rows, by 400 bins of true probabilities."""
        if self.power == 1:
            return 0.0
        truth, scores, _ = self.draw(400_000)
        order = scores.argsort(axis=0)
        both = [np.take_along_axis(a, order, axis=0).reshape(400, 1000, -1).mean(axis=1) for a in (truth, scores)]
        return float(np.abs(both[0] - both[1]).mean())


@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize(("classes", "power"), [(2, 1.0), (10, 1.0), (10, 1.5)])
def test_class_wise_intervals_cover_the_truth(classes, power, scheme):
    """25 datasets of 300 rows at 90 %: coverage compatible with 0.86. A plain bootstrap covers none of them with ten classes."""
    world = Classes(classes, power, seed=classes)
    error = world.error()
    covered = 0
    for i in range(25):
        _, scores, labels = world.draw(300)
        preds = tc.Predictions.from_probs(scores, labels)
        estimate = tc.measure(preds, estimator=tc.BinnedECE(scheme=scheme), lens=tc.ClassWise(), level=0.9, rng=i)
        assert estimate.value > error  # the plain estimate is far too large here
        covered += estimate.interval.low <= error <= estimate.interval.high
    assert binomtest(covered, 25, 0.86, alternative="less").pvalue > 0.01, covered / 25


def test_a_class_wise_error_that_is_there_is_found():
    world = Classes(5, 2.0, seed=1)
    _, scores, labels = world.draw(2000)
    for estimator in (tc.BinnedECE(), tc.SweepECE(), tc.NearestECE(norm=1), tc.BinnedECE(scheme="mass", norm=np.inf)):
        estimate = tc.measure(tc.Predictions.from_probs(scores, labels), estimator=estimator, lens=tc.ClassWise())
        assert estimate.interval.low > 0


def clustered(clusters, rng, power=1.0):
    """Twenty rows a cluster with scores near each other; four in five share the uniform draw of their cluster."""
    p = rng.random((clusters, 1)) * 0.8 + 0.2 * rng.random((clusters, 20))
    uniform = np.where(rng.random(p.shape) < 0.8, rng.random((clusters, 1)), rng.random(p.shape))
    return p.ravel(), (uniform < p**power).ravel().astype(int), np.repeat(np.arange(clusters), 20)


@pytest.mark.parametrize("lens", [tc.OneClass(), tc.ClassWise(), tc.AllLabels()])
def test_calibrated_clusters_are_not_called_miscalibrated(lens):
    """40 datasets of 50 clusters at 90 %: the interval reaches zero as often as compatible with 0.86."""
    rng = np.random.default_rng(7)
    covered = 0
    for i in range(40):
        p, y, g = clustered(50, rng)
        preds = tc.Predictions.from_probs(p, y, clusters=g)
        covered += tc.measure(preds, estimator=tc.BinnedECE(), lens=lens, level=0.9, rng=i).interval.low == 0
    assert binomtest(covered, 40, 0.86, alternative="less").pvalue > 0.01, covered / 40


@pytest.mark.parametrize("norm", [1, 2])
def test_both_classes_of_clustered_binary_predictions_have_one_error(norm):
    """Class 0 mirrors class 1, so the class-wise error is that of one class: correlation within clusters is left out of both."""
    p, y, g = clustered(40, np.random.default_rng(9), power=2)
    preds = tc.Predictions.from_probs(p, y, clusters=g)
    one, both = (tc.measure(preds, estimator=tc.RankSeries(norm=norm), lens=lens) for lens in (None, tc.ClassWise()))
    assert both.value == pytest.approx(one.value, rel=1e-6)
    np.testing.assert_allclose(both.parts, one.value, rtol=1e-6)


@pytest.mark.parametrize("estimator", [tc.BinnedECE(), tc.SweepECE(), tc.RankSeries()])
def test_only_ratios_of_importance_weights_matter_to_class_wise_intervals(estimator):
    _, scores, labels = Classes(3, 1.5, seed=2).draw(300)
    w = np.random.default_rng(3).random(300) + 0.1
    values = [
        tc.measure(
            tc.Predictions.from_probs(scores, labels, weights=scale * w), estimator=estimator, lens=tc.ClassWise()
        )
        for scale in (1.0, 1000.1)
    ]
    np.testing.assert_allclose(*((est.value, est.interval.low, est.interval.high) for est in values), rtol=1e-6)


def test_the_mean_of_a_folded_normal_is_its_definition():
    rng = np.random.default_rng(0)
    gap, variance = np.array([0.0, 0.1, -0.3, 0.2]), np.array([0.04, 0.01, 0.02, 0.0])
    drawn = np.abs(gap + np.sqrt(variance) * rng.standard_normal((400_000, 4))).mean(axis=0)
    np.testing.assert_allclose(folded_mean(gap, variance), drawn, atol=1e-3)
