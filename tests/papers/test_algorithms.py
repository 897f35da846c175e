"""Every equation, definition and algorithm of the papers, written out with loops from their text, against truecal (1e-9).

The names of these tests are the commands of rows in papers/*/items.csv.
"""

import math
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, optimize, special

import truecal as tc
from papers.kumar.outputs import marginal_squared, marginals
from papers.peng.benchmark import LeastRisk
from papers.roelofs.bias import AuthorsKDE
from truecal.lab import Beta, Power, Uniform, World, fit_beta, fit_world
from truecal.profile import Profile

SEEDS = (0, 1, 2)
PLANTED = 0.0  # an error added to every number of truecal's, by the test that these tests can fail


def assert_equal(ours, expected, within=1e-9):
    """Every number of truecal's is within 1e-9 of that of the code here."""
    np.testing.assert_allclose(np.asarray(ours, float) + PLANTED, expected, rtol=0, atol=within)


def draw(seed, n=173):
    """Scores without ties, and outcomes of an overconfident model."""
    rng = np.random.default_rng(seed)
    c = rng.beta(2, 0.7, n)
    return c, (rng.random(n) < c**1.6).astype(float)


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def width_bins(c, y, b):
    bins = [[] for _ in range(b)]
    for ci, yi in zip(c, y, strict=True):
        k = next(k for k in range(b) if k == b - 1 or ci < (k + 1) / b)
        bins[k].append((ci, yi))
    return [one for one in bins if one]


def mass_bins(c, y, b):
    rows = sorted(zip(c, y, strict=True))
    n = len(rows)
    cuts = [-(-k * n // b) for k in range(b + 1)]
    return [rows[a:z] for a, z in pairwise(cuts) if z > a]


SCHEMES = {"width": width_bins, "mass": mass_bins}


def ece_bin(bins, p):
    n = sum(len(one) for one in bins)
    return math.fsum(len(b) / n * abs(mean(c for c, _ in b) - mean(y for _, y in b)) ** p for b in bins) ** (1 / p)


def ece_lb(bins, p):
    n = sum(len(one) for one in bins)
    return math.fsum(abs(c - mean(y for _, y in b)) ** p / n for b in bins for c, _ in b) ** (1 / p)


def value(estimator, c, y):
    return float(estimator.values(Profile.from_arrays(c, y))[0])


@pytest.mark.parametrize("p", [1, 2, 3])
def test_true_calibration_error(p):
    # Scores in closed form where there is one, else by adaptive quadrature in v = (1 - c)^beta.
    for d in (1.5, 2.0, 4.0):
        exact = integrate.quad(lambda c, d=d: (c - c**d) ** p, 0, 1, epsabs=1e-14, epsrel=1e-13)[0] ** (1 / p)
        assert_equal(World(Uniform(), Power(d)).true_error(p), exact)
    alpha, beta = 2.8, 0.3

    def integrand(v):
        rest = v ** (1 / beta)
        c = 1 - rest
        return c ** (alpha - 1) / beta * abs(c - c**2) ** p

    brute = integrate.quad(integrand, 0, 1, epsabs=1e-14, epsrel=1e-13, limit=400)[0] / special.beta(alpha, beta)
    assert_equal(World(Beta(alpha, beta), Power(2)).true_error(p), brute ** (1 / p))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_binned_error(seed, p, scheme):
    c, y = draw(seed)
    for b in (1, 2, 7, 15, 100):
        ours = value(tc.BinnedECE(bins=b, scheme=scheme, norm=p, ties="split"), c, y)
        assert_equal(ours, ece_bin(SCHEMES[scheme](c, y, b), p))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_label_binned_error(seed, p, scheme):
    c, y = draw(seed)
    for b in (1, 2, 7, 15, 100):
        ours = value(tc.estimators.LabelBinnedECE(bins=b, scheme=scheme, norm=p, ties="split"), c, y)
        assert_equal(ours, ece_lb(SCHEMES[scheme](c, y, b), p))


@pytest.mark.parametrize("seed", range(20))
def test_label_binned_is_never_below_binned(seed):
    # Jensen's inequality (equation 5), bin by bin.
    c, y = draw(seed, 60)
    for b in (1, 3, 10, 30):
        for p in (1, 2):
            width = {"bins": b, "scheme": "width", "norm": p}
            excess = value(tc.estimators.LabelBinnedECE(**width), c, y) - value(tc.BinnedECE(**width), c, y)
            bins = width_bins(c, y, b)
            assert_equal(excess, ece_lb(bins, p) - ece_bin(bins, p))
            assert excess > -1e-12


def sweep(c, y, scheme, p):
    """Algorithm 1, read literally: the largest b before the first that is not monotone."""
    last = 1
    for b in range(2, len(c) + 1):
        rates = [mean(yi for _, yi in one) for one in SCHEMES[scheme](c, y, b)]
        if any(low > high for low, high in pairwise(rates)):
            break
        last = b
    return last, ece_bin(SCHEMES[scheme](c, y, last), p)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scheme", SCHEMES)
def test_monotone_sweep(seed, scheme):
    c, y = draw(seed, 211)
    for p in (1, 2):
        estimator = tc.SweepECE(scheme=scheme, norm=p, ties="split")
        bins, expected = sweep(c, y, scheme, p)
        assert_equal(value(estimator, c, y), expected)
        assert estimator.sweep(Profile.from_arrays(c, y))[0].item() == bins


def test_bias_is_mean_minus_truth():
    world = World(Uniform(), Power(2))
    trial = tc.lab.bias(tc.BinnedECE(norm=2), world, n=60, m=40)
    assert_equal(trial.bias, mean(trial.values) - math.sqrt(1 / 3 - 1 / 2 + 1 / 5))
    (again,) = tc.lab.trials({"EW": tc.BinnedECE(norm=2)}, {"world": world}, n=[60], m=40)
    np.testing.assert_array_equal(trial.values, again.values)


def newton(gradient, hessian, start):
    """Where a gradient is 0, to the last digits."""
    theta = np.array(start, dtype=float)
    for _ in range(100):
        theta = theta - np.linalg.solve(hessian(theta), gradient(theta))
    return theta


def test_beta_fit_maximises_the_likelihood():
    c, _ = draw(0, 2000)
    logs = np.array([mean(np.log(c)), mean(np.log1p(-c))])

    def gradient(theta):  # of equation 8, per row
        return special.digamma(theta) - special.digamma(theta.sum()) - logs

    def hessian(theta):
        return np.diag(special.polygamma(1, theta)) - special.polygamma(1, theta.sum())

    fitted = fit_beta(c, np.ones(c.size)).scores
    assert_equal([fitted.alpha, fitted.beta], newton(gradient, hessian, [2.0, 0.7]))


LINKS = {  # the probability and its complement at a linear predictor
    "logit": lambda x: (1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x))),
    "log": lambda x: (np.exp(x), -np.expm1(x)),
    "logflip": lambda x: (-np.expm1(x), np.exp(x)),
}
ENDS = (1e-12, 1 - 1e-12)
TRANSFORMS = {
    "logit": lambda c: np.log(c) - np.log1p(-c),
    "log": np.log,
    "logflip": lambda c: np.log1p(-c),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_curves_maximise_the_likelihood(seed):
    c, y = draw(seed, 500)
    for fit in fit_world(Profile.from_arrays(c, y)).curves:
        terms = [name in fit.terms.split("_") for name in ("b0", "b1")]

        def loss(theta, fit=fit, terms=terms):  # equation 9
            b0, b1 = (theta[sum(terms[:k])] if used else 0.0 for k, used in enumerate(terms))
            with np.errstate(over="ignore", divide="ignore"):
                p, rest = LINKS[fit.curve.link](b0 + b1 * TRANSFORMS[fit.curve.transform](np.append(c, ENDS)))
            if p.min() < 0 or rest.min() < 0:  # a probability at every score
                return math.inf
            return -math.fsum(np.log(np.where(y == 1, p[:-2], rest[:-2])))

        ours = np.array([b for b, used in zip((fit.curve.b0, fit.curve.b1), terms, strict=True) if used])
        # From our optimum and from 1 % beside it, simplices find no higher likelihood.
        best = min(
            optimize.minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11}).fun
            for start in (ours, 1.01 * ours)
        )
        assert_equal(fit.aic / c.size, (2 * sum(terms) + 2 * best) / c.size)


def nearest(c, y, k, p, own):
    total = 0.0
    for ci in c:
        rows = sorted(range(len(c)), key=lambda j: (abs(c[j] - ci), c[j]))[:k]
        score = ci if own else mean(c[j] for j in rows)
        total += abs(score - mean(y[j] for j in rows)) ** p / len(c)
    return total ** (1 / p)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("p", [1, 2])
def test_nearest_neighbours(seed, p):
    c, y = draw(seed, 97)
    for k in (1, 2, 5, 30):
        ours = value(tc.NearestECE(neighbors=k, norm=p), c, y)
        assert_equal(ours, nearest(c, y, k, p, own=False))


@pytest.mark.parametrize("seed", SEEDS)
def test_neighbours_with_the_own_score(seed):
    c, y = draw(seed, 97)
    for k in (1, 5, 30):
        ours = value(tc.NearestECE(neighbors=k, norm=2, score="own"), c, y)
        assert_equal(ours, nearest(c, y, k, 2, own=True))


@pytest.mark.parametrize("n", [150, 400, 5000])
def test_number_of_neighbours(n):
    c, y = draw(3, n)
    dense = sum(ci >= 0.99 for ci in c)
    k = round((n - dense) / (1 + math.log(n / 100)))
    assert_equal(tc.NearestECE(region=(0.99, 1.0)).count(Profile.from_arrays(c, y)).item(), k)


def outputs_of(seed, n=400):
    """A binned model: few outputs."""
    rng = np.random.default_rng(seed)
    c = rng.choice([0.1, 0.25, 0.5, 0.75, 0.95], n)
    return c, (rng.random(n) < c**1.3).astype(float)


def by_output(c, y):
    return {s: [yi for ci, yi in zip(c, y, strict=True) if ci == s] for s in sorted(set(c))}


@pytest.mark.parametrize("seed", SEEDS)
def test_plugin_and_debiased_errors(seed):
    c, y = outputs_of(seed)
    plugin = debiased = 0.0
    for s, labels in by_output(c, y).items():
        p, rate = len(labels) / len(c), mean(labels)
        plugin += p * (s - rate) ** 2
        debiased += p * ((s - rate) ** 2 - rate * (1 - rate) / (len(labels) - 1))
    assert_equal(value(tc.BinnedECE(bins=1000, norm=2), c, y), math.sqrt(plugin))
    assert_equal(value(tc.DebiasedECE(bins=None, norm=2), c, y), math.sqrt(max(debiased, 0)))


@pytest.mark.parametrize("seed", SEEDS)
def test_debiased_l1_error(seed):
    c, y = outputs_of(seed)
    plugin = expected = 0.0
    for s, labels in by_output(c, y).items():
        p, rate = len(labels) / len(c), mean(labels)
        sd = math.sqrt(rate * (1 - rate) / len(labels))
        # E|s - R| by quadrature of both halves of the normal distribution
        halves = [
            integrate.quad(
                lambda z, s=s, rate=rate, sd=sd: abs(s - rate - sd * z) * math.exp(-z * z / 2), a, b, epsabs=1e-13
            )[0]
            for a, b in ((-12, (s - rate) / sd), ((s - rate) / sd, 12))
        ]
        plugin += p * abs(s - rate)
        expected += p * sum(halves) / math.sqrt(2 * math.pi)
    ours = value(tc.DebiasedECE(bins=None, norm=1), c, y)
    assert_equal(ours, max(2 * plugin - expected, 0))


def test_well_balanced_bins():
    c, y = outputs_of(0, 1000)
    shares = [len(labels) / len(c) for labels in by_output(c, y).values()]
    alpha = max(max(share * len(shares), 1 / (share * len(shares))) for share in shares)
    verified = tc.verify(tc.Predictions.from_probs(c, y.astype(int)), threshold=0.2)
    assert_equal(verified.balance, alpha)


def classes(seed, n=200, k=4):
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, k))
    probs = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    labels = np.array([rng.choice(k, p=row**0.7 / (row**0.7).sum()) for row in probs])
    return tc.Predictions.from_probs(probs, labels)


def test_mean_squared_error():
    c, y = draw(0)
    preds = tc.Predictions.from_probs(c, y.astype(int))
    squared = mean((ci - yi) ** 2 for ci, yi in zip(c, y, strict=True))
    assert_equal(tc.scores.brier(preds), squared)


@pytest.mark.parametrize("seed", SEEDS)
def test_top_label_and_marginal_errors(seed):
    preds = classes(seed)
    top = [(max(p), float(np.argmax(p) == y)) for p, y in zip(preds.probs, preds.labels, strict=True)]
    estimator = tc.BinnedECE(bins=10, norm=2)
    ours = float(estimator.values(tc.TopLabel()(preds))[0])
    assert_equal(ours, ece_bin(width_bins(*zip(*top, strict=True), 10), 2))
    squares = []
    for k in range(4):
        c, y = preds.probs[:, k], (preds.labels == k).astype(float)
        squares.append(ece_bin(width_bins(c, y, 10), 2) ** 2)
        one = tc.Predictions.from_probs(c, y.astype(int))
        assert_equal(float(tc.measure(one, estimator=estimator).value) ** 2, squares[-1])
    rounded = SimpleNamespace(class_count=4, probs=np.floor(preds.probs * 8) / 8, labels=preds.labels)
    brute = 0.0
    for k in range(4):
        for s, labels in by_output(rounded.probs[:, k], (preds.labels == k).astype(float)).items():
            brute += len(labels) / 200 * (s - mean(labels)) ** 2 / 4  # equal weights of the classes
    assert_equal(marginal_squared(marginals(rounded))[0], brute)


def test_bias_of_a_bin():
    """Minderer et al., equation 5 and appendix C: every dataset of three rows of a bin, with its probability."""
    chances = {(0.6, 1): 0.3, (0.6, 0): 0.2, (0.95, 1): 0.4, (0.95, 0): 0.1}  # of (confidence, outcome)

    def expect(f):
        return math.fsum(p * f(c, a) for (c, a), p in chances.items())

    n, mean_c, mean_a = 3, expect(lambda c, a: c), expect(lambda c, a: a)
    bias = -((mean_c - mean_a) ** 2)
    for rows in product(chances.items(), repeat=n):
        c, a = zip(*(row for row, _ in rows), strict=True)
        squared = value(tc.BinnedECE(bins=1, norm=2), c, a) ** 2
        bias += math.prod(p for _, p in rows) * squared
    var_c, var_a = expect(lambda c, a: (c - mean_c) ** 2), expect(lambda c, a: (a - mean_a) ** 2)
    assert_equal(bias, (var_a + var_c - 2 * expect(lambda c, a: (c - mean_c) * (a - mean_a))) / n)


def fit_sigmoid(x, y, loss):
    """Intercept and slope of least negative log likelihood or least squares, by Newton's method."""

    def curve(theta):
        return 1 / (1 + np.exp(-(theta[0] + theta[1] * x)))

    design = np.stack([np.ones(x.size), x])

    def gradient(theta):
        g = curve(theta)
        return design @ (g - y if loss == "likelihood" else (g - y) * g * (1 - g))

    def hessian(theta):
        g = curve(theta)
        v = g * (1 - g)
        weight = v if loss == "likelihood" else v**2 + (g - y) * v * (1 - 2 * g)
        return (design * weight) @ design.T

    start = newton(gradient, hessian, [0.0, 1.0]) if loss == "likelihood" else fit_sigmoid(x, y, "likelihood")
    return newton(gradient, hessian, start)


@pytest.mark.parametrize("loss", ["likelihood", "squared"])
def test_scaling_binning(loss):
    c, y = draw(1, 600)
    x = np.log(c) - np.log1p(-c)
    intercept, slope = fit_sigmoid(x, y, loss)  # step 1
    values = 1 / (1 + np.exp(-(intercept + slope * x)))
    bins = 8
    rows = sorted(range(len(c)), key=lambda i: values[i])  # step 2: bins of equal mass
    parts = [rows[-(-k * len(c) // bins) : -(-(k + 1) * len(c) // bins)] for k in range(bins)]
    expected = np.empty(len(c))
    for part in parts:  # step 3: the mean of g in the bin
        expected[part] = mean(values[part])
    scaling = tc.recalibration.BetaCalibration(parameters=2, loss=loss)
    ours = tc.recalibration.ScalingBinning(bins=bins, scaling=scaling).fit(c, y.astype(int)).predict_proba(c)[:, 1]
    assert_equal(ours, expected, within=1e-9 if loss == "likelihood" else 1e-8)  # Levenberg-Marquardt stops earlier


@pytest.mark.parametrize("method", ["histogram", "temperature", "isotonic"])
def test_recalibrations(method):
    """The three recalibrations of Roelofs et al., Figure 2; temperature scaling is also that of Peng, Kirchenbauer and Minderer."""
    if method == "temperature":
        rng = np.random.default_rng(0)
        logits = 3 * rng.normal(size=(300, 4))
        calm = np.exp(logits / 2) / np.exp(logits / 2).sum(axis=1, keepdims=True)
        labels = np.array([rng.choice(4, p=row) for row in calm])

        def slope(inverse):  # derivative of the mean negative log likelihood
            probs = np.exp(inverse * logits) / np.exp(inverse * logits).sum(axis=1, keepdims=True)
            return mean(row @ z - z[k] for row, z, k in zip(probs, logits, labels, strict=True))

        inverse = optimize.brentq(slope, 0.05, 5, xtol=1e-14, rtol=1e-14)
        probs = np.exp(inverse * logits) / np.exp(inverse * logits).sum(axis=1, keepdims=True)
        scaling = tc.recalibration.TemperatureScaling(input="logits").fit(logits, labels)
        assert_equal(scaling.predict_proba(logits), probs)
        return
    c, y = draw(4, 150)
    if method == "histogram":
        ours = tc.recalibration.HistogramBinning(bins=15, scheme="width", input="probs")
        expected = [mean(yi for ci, yi in zip(c, y, strict=True) if int(15 * ci) == int(15 * points)) for points in c]
    else:
        ours = tc.recalibration.IsotonicCalibration(input="probs")
        order = np.argsort(c)
        means = [[mean(y[order[a : z + 1]]) if z >= a else 1.0 for z in range(c.size)] for a in range(c.size)]
        expected = np.empty(c.size)
        for position, row in enumerate(order):  # the largest least mean of the blocks that hold the row
            expected[row] = max(min(means[a][position:]) for a in range(position + 1))
    assert_equal(ours.fit(c, y.astype(int)).predict_proba(c)[:, 1], expected)


def test_reliability_conditions():
    """Rows in which every output comes true as often as it says have no error; the top-1 condition is the weaker one."""
    probs = np.repeat([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2]], 10, axis=0)
    full = [0] * 7 + [1] * 2 + [2] + [0] * 5 + [1] * 3 + [2] * 2
    top = [0] * 7 + [2] * 3 + [0] * 5 + [1] * 5  # the first class as often as it says, not the others
    errors = [
        float(tc.GeneralizedECE(lens=lens, binning=tc.estimators.KDTree(0.5), level=None)(preds))
        for preds in (tc.Predictions.from_probs(probs, np.array(labels)) for labels in (full, top))
        for lens in (tc.Canonical(), tc.TopK(1))
    ]
    assert_equal(errors, [0, 0, 0.5 * 0.2 + 0.5 * 0.2, 0])


def one_hot(labels, k):
    return np.array([[float(j == y) for j in range(k)] for y in labels])


def split_tree(rows, outputs, least):
    """Appendix B: halve at the mean of the coordinate of highest variance while a node has `least` rows."""
    if len(rows) < max(least, 2):
        return [rows]
    means = [mean(outputs[i][j] for i in rows) for j in range(outputs.shape[1])]
    spread = [mean((outputs[i][j] - m) ** 2 for i in rows) for j, m in enumerate(means)]
    j = int(np.argmax(spread))
    low = [i for i in rows if outputs[i][j] < means[j]]
    high = [i for i in rows if outputs[i][j] >= means[j]]
    if not low or not high:
        return [rows]
    return split_tree(low, outputs, least) + split_tree(high, outputs, least)


def gece(outputs, outcomes, distance, gamma=0.1):
    n = len(outputs)
    bins = split_tree(list(range(n)), outputs, round(gamma * n))
    total = 0.0
    for rows in bins:
        g = [mean(outputs[i][j] for i in rows) for j in range(outputs.shape[1])]
        y = [mean(outcomes[i][j] for i in rows) for j in range(outputs.shape[1])]
        total += len(rows) / n * distance(g, y)
    return total


def total_variation(g, y):
    return sum(abs(a - b) for a, b in zip(g, y, strict=True)) / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_generalized_error(seed):
    preds = classes(seed)
    expected = gece(preds.probs, one_hot(preds.labels, 4), total_variation)
    assert_equal(float(tc.GeneralizedECE(lens=tc.Canonical(), level=None)(preds)), expected)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_top_k_lens(k):
    preds = classes(5)
    outputs, outcomes = [], []
    for p, y in zip(preds.probs, preds.labels, strict=True):
        first = sorted(range(4), key=lambda j: -p[j])[:k]
        outputs.append([*(p[j] for j in first), 1 - sum(p[j] for j in first)])
        outcomes.append([*(float(j == y) for j in first), float(y not in first)])
    expected = gece(np.array(outputs), np.array(outcomes), total_variation)
    assert_equal(float(tc.GeneralizedECE(lens=tc.TopK(k), level=None)(preds)), expected)


def test_grouping_lens():
    preds = classes(6)
    groups = {"a": [0, 2], "b": [1], "c": [3]}
    outputs = np.array([[sum(p[j] for j in g) for g in groups.values()] for p in preds.probs])
    outcomes = np.array([[float(y in g) for g in groups.values()] for y in preds.labels])
    expected = gece(outputs, outcomes, total_variation)
    ours = tc.GeneralizedECE(lens=tc.Grouping(groups), level=None)(preds)
    assert_equal(float(ours), expected)


def test_inter_interval_distance():
    low, high = 0.33, 0.66
    rng = np.random.default_rng(0)
    c = rng.uniform(low, high, 300)
    y = (rng.random(300) < c**2).astype(int)
    outputs, outcomes = np.stack([1 - c, c], axis=1), one_hot(y, 2)
    expected = gece(outputs, outcomes, lambda g, rate: max(0.0, low - rate[1], rate[1] - high))
    judge = tc.GeneralizedECE(lens=tc.OneClass(1), distance=tc.estimators.InterInterval(low, high), level=None)
    assert_equal(float(judge(tc.Predictions.from_probs(c, y))), expected)
    assert expected > 0


def test_weighted_and_mahalanobis_distances():
    preds = classes(7)
    weights = [0.5, 1.0, 2.0, 0.1]
    half = np.random.default_rng(0).normal(size=(4, 4))
    matrix = half @ half.T

    def weighted(g, y):
        return math.sqrt(sum(w * (a - b) ** 2 for w, a, b in zip(weights, g, y, strict=True)))

    def mahalanobis(g, y):
        gap = [a - b for a, b in zip(g, y, strict=True)]
        return math.sqrt(sum(gap[i] * matrix[i][j] * gap[j] for i in range(4) for j in range(4)))

    pairs = ((tc.estimators.ClassWeighted(weights), weighted), (tc.estimators.Mahalanobis(matrix), mahalanobis))
    for distance, by_hand in pairs:
        ours = tc.GeneralizedECE(lens=tc.Canonical(), distance=distance, level=None)(preds)
        assert_equal(float(ours), gece(preds.probs, one_hot(preds.labels, 4), by_hand))


@pytest.mark.parametrize("gamma", [0.5, 0.1, 1 / 16, 1 / 64])
def test_kd_tree_bins(gamma):
    preds = classes(8, 300)
    judge = tc.GeneralizedECE(lens=tc.Canonical(), binning=tc.estimators.KDTree(gamma), level=None)
    expected = gece(preds.probs, one_hot(preds.labels, 4), total_variation, gamma)
    assert_equal(float(judge(preds)), expected)
    sizes = sorted(len(rows) for rows in split_tree(list(range(300)), preds.probs, round(gamma * 300)))
    counts = judge(preds).vector_bins.count
    assert sorted(int(c) for c in counts if c) == sizes


def test_k_by_risk_is_the_best_of_its_grid_by_hand():
    rng = np.random.default_rng(0)
    c = np.sort(rng.beta(2, 0.5, 80))
    y = (rng.random(80) < c**1.3).astype(int)
    risks = {}
    for k in (2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 80):
        near = np.argsort(np.abs(c[:, None] - c).round(15), axis=1, kind="stable")[:, :k]
        others = [row[row != i] for i, row in enumerate(near)]
        errors = [c[i] - y[i] - np.mean((c - y)[row]) for i, row in enumerate(others)]
        risks[k] = np.mean(np.square(errors))
    profile = Profile.from_arrays(c, y)
    estimate = LeastRisk()(profile)
    assert estimate.settings["neighbors"][0] == min(risks, key=risks.get)
    assert estimate.value == tc.NearestECE(neighbors=min(risks, key=risks.get))(profile).value


def test_the_authors_bandwidth_is_the_spread_of_scores_whose_outcome_is_one():
    rng = np.random.default_rng(0)
    c, y = rng.random(300), rng.integers(0, 2, 300)
    assert AuthorsKDE().bandwidths(Profile.from_arrays(c, y))[0] == pytest.approx(c[y == 1].std() * 600**-0.2)
