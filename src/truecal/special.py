"""Special functions and small computations that have one definition each; a test refuses a second one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# Logistic functions, by scipy, which is imported on the first call: reading predictions does not need it


def expit(z: ArrayLike) -> Float64s:
    """Compute 1 / (1 + exp(-z)) in float64, without overflow.

    >>> expit(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    from scipy import special

    return np.asarray(special.expit(np.asarray(z, np.float64)))


def logit(p: ArrayLike) -> Float64s:
    """Compute log(p / (1 - p)) in float64: minus and plus infinity at 0 and 1.

    >>> logit(np.array([0.0, 0.5, 1.0]))
    array([-inf,   0.,  inf])
    """
    from scipy import special

    return np.asarray(special.logit(np.asarray(p, np.float64)))


def logsumexp(values: ArrayLike, axis: int = -1) -> Float64s:
    """Compute log(sum(exp(values))) along an axis; minus infinity where every term is zero.

    >>> logsumexp(np.array([[0.0, 0.0], [-np.inf, -np.inf]])).round(4)
    array([0.6931,   -inf])
    """
    from scipy import special

    return np.asarray(special.logsumexp(np.asarray(values, np.float64), axis=axis))


_BLOCK = 1 << 18  # derived: elements converted to float64 at a time, 2 MiB
_FEW_CLASSES = 32  # by choice: up to so many, sums over classes are quicker class by class than row by row
_SMALL_BLOCK = 1 << 15  # derived: elements converted at a time where there are few classes: what stays in cache


def softmax(logits: Floats) -> Float64s:
    """Compute the softmax of every row of logits, shape (n, classes), in float64 and without overflow.

    A logit of minus infinity gives probability 0; no row may consist of these alone. scipy's function makes several copies of
    the matrix; here blocks of rows stay in cache.

    >>> softmax(np.array([[1000.0, 999.0], [0.0, -np.inf]]))
    array([[0.73105858, 0.26894142],
           [1.        , 0.        ]])
    """
    rows, count = logits.shape
    probs = np.empty((rows, count), np.float64)
    if count <= _FEW_CLASSES:
        step = _SMALL_BLOCK // max(count, 1)
        for start in range(0, rows, step):
            columns = logits[start : start + step].T.astype(np.float64, order="C")
            columns -= columns.max(axis=0)
            np.exp(columns, out=columns)
            columns /= columns.sum(axis=0)
            probs[start : start + step] = columns.T
        return probs
    step = max(1, _BLOCK // count)
    for start in range(0, rows, step):
        block = probs[start : start + step]
        block[...] = logits[start : start + step]
        block -= block.max(axis=1, keepdims=True)
        np.exp(block, out=block)
        block /= block.sum(axis=1, keepdims=True)
    return probs


# ----------------------------------------------------------------------------------------------------
# Rates, weights and labels


def clopper_pearson(ones: ArrayLike, rows: ArrayLike, tail: float) -> tuple[Float64s, Float64s]:
    """Compute exact lower and upper limits of a rate, each missed with probability at most `tail`.

    Counts may be fractions, as of an effective number of rows; limits without rows are 0 and 1 (Clopper and Pearson
    1934, doi:10.1093/biomet/26.4.404).

    >>> low, high = clopper_pearson([0, 5], [10, 10], 0.025)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    from scipy.special import betaincinv

    ones, rows = np.asarray(ones, np.float64), np.asarray(rows, np.float64)
    zeros = rows - ones
    low = np.where((ones > 0) & (rows > 0), betaincinv(positive(ones), np.maximum(zeros, 0.0) + 1, tail), 0.0)
    high = np.where(zeros > 0, betaincinv(np.maximum(ones, 0.0) + 1, positive(zeros), 1 - tail), 1.0)
    return low, high


def kish(weights: Float64s) -> Float64s:
    """Compute the effective number of rows of importance weights over the last axis, (sum w)^2 / sum w^2 (Kish 1965).

    Weights that are all 0 give nan.

    >>> float(kish(np.array([1.0, 1.0, 2.0])).round(4))
    2.6667
    """
    return np.asarray(weights.sum(axis=-1) ** 2 / (weights**2).sum(axis=-1))


def draw_labels(probs: Floats, rng: np.random.Generator) -> Indices:
    """Draw one label per row: 0 or 1 from P(1) of shape (n,), a class from probabilities of shape (n, classes).

    Rows are not normalised: the last class has 1 minus the sum of the others. Returns integers of shape (n,).

    >>> draw_labels(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0))
    array([1, 0])
    """
    if probs.ndim == 1:
        return (rng.random(len(probs)) < probs).astype(np.intp)
    below = probs.cumsum(axis=1)[:, :-1] < rng.random((len(probs), 1))
    return np.asarray(below.sum(axis=1))


def positive(values: NDArray[Any]) -> Float64s:
    """Replace values that are not positive by 1, for use as divisors; the shape stays, NaN becomes 1.

    >>> positive(np.array([0.0, 2.0]))
    array([1., 2.])
    """
    return np.where(values > 0, values, 1.0)


def root(power: NDArray[Any] | float, norm: float) -> Float64s:
    """Compute power ** (1 / norm), the error from its power; 0 where the estimated power is negative.

    With the norm inf the power is the error itself (the largest gap) and is returned as it is.

    >>> root(np.array([0.04, -0.01]), 2)
    array([0.2, 0. ])
    """
    power = np.maximum(power, 0.0)
    return power if norm in (1, np.inf) else np.asarray(power ** (1 / norm))


def symmetric_root(covariance: Float64s) -> Float64s:
    """Compute the symmetric root of covariances (..., k, k); standard normals times it have the covariance.

    Other roots depend on the signs and order of eigenvectors, which differ between processors.

    >>> root = symmetric_root(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> (root @ root).round(12)
    array([[2., 1.],
           [1., 2.]])
    """
    sizes, directions = np.linalg.eigh(covariance)
    scaled = directions * np.sqrt(np.maximum(sizes, 0.0))[..., None, :]
    return np.asarray(scaled @ np.swapaxes(directions, -1, -2))


# ----------------------------------------------------------------------------------------------------
# The one logistic regression of the project: weighted maximum likelihood by Newton's method, with an optional offset

_STEPS = 100  # by choice: of Newton; a problem with a finite optimum needs about ten
# derived: decrement per unit of weight (squared step) from which one more step leaves nothing but rounding
_NEAR = 1e-14
# By choice: curvature of a direction, as a share of its mean square, below which the outcomes are separated along it.
_FLAT = 1e-10
_SHORTEST = 1e-10  # by choice: a step halved to this length improves nothing that could be measured


@dataclass(frozen=True)
class LogisticFit:
    """Coefficients (k,) of P(y = 1) = sigmoid(offset + design @ coefficients), one per column of the design.

    `probs` (n,) are the fitted probabilities of the rows, `information` (k, k) the weighted design' p (1 - p) design at the
    optimum, and `converged` is False where no finite optimum was reached: a combination of the columns separates the outcomes.
    """

    coefficients: Float64s
    probs: Float64s
    information: Float64s
    converged: bool


def fit_logistic(
    design: Float64s, targets: Float64s, weights: Float64s | None = None, offset: Float64s | None = None
) -> LogisticFit:
    r"""Maximise sum_i w_i [t_i z_i - log(1 + exp z_i)] over z = offset + design @ coefficients.

    Newton's step solves (X' W X) step = X' w (p - t) and is halved until the loss falls by a quarter of what the
    linear model of the step predicts (Armijo). Columns are divided by their root mean square first, so that their units do not
    matter; where columns depend on each other the shortest solution is taken. Targets may be fractions. Without a finite optimum
    the coefficients are those of the last step, and `converged` is False.

    Parameters
    ----------
    design : (n, k), a column of ones for an intercept. targets : (n,) in [0, 1]. weights, offset : (n,), default 1 and 0.

    Raises
    ------
    InputError
        The design is not a matrix with one row per target.

    Examples
    --------
    >>> import numpy as np
    >>> fit = fit_logistic(np.ones((4, 1)), np.array([0.0, 1.0, 1.0, 1.0]))
    >>> bool(np.isclose(fit.coefficients[0], np.log(3))), fit.converged
    (True, True)
    """
    if design.ndim != 2 or design.shape[0] != len(targets):
        raise InputError(f"the design has shape {design.shape} but there are {len(targets)} targets")
    weight = np.ones(len(targets)) if weights is None else weights
    shift = np.zeros(len(targets)) if offset is None else offset
    total = float(weight.sum())
    size = np.sqrt(weight @ design**2 / total)
    size[size == 0] = 1.0
    columns = design / size
    beta = np.zeros(design.shape[1])
    loss, probs = logistic_loss(shift, targets, weight)
    converged = False
    for _ in range(_STEPS):
        gradient = columns.T @ (weight * (probs - targets))
        curvature = (columns * (weight * probs * (1 - probs))[:, None]).T @ columns
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        decrement = float(gradient @ step)
        if decrement <= _NEAR * total:
            beta = beta - step
            probs = logistic_loss(shift + columns @ beta, targets, weight)[1]
            converged = True
            break
        length = 1.0
        while length > _SHORTEST:
            trial_loss, probs = logistic_loss(shift + columns @ (beta - length * step), targets, weight)
            if trial_loss <= loss - 0.25 * length * decrement:
                break
            length /= 2
        else:
            break
        beta, loss = beta - length * step, trial_loss
    curvature = (columns * (weight * probs * (1 - probs))[:, None]).T @ columns
    square = (columns * weight[:, None]).T @ columns
    flat = np.linalg.matrix_rank(curvature, _FLAT * total) < np.linalg.matrix_rank(square, _FLAT * total)
    return LogisticFit(beta / size, probs, curvature * np.outer(size, size), converged and not flat)


def fit_curve(features: Float64s, targets: Float64s, weights: Float64s) -> Float64s:
    """Fit sigmoid(features @ coefficients + intercept) by weighted maximum likelihood.

    Features have shape (n, k), targets and weights (n,); returned are the k coefficients and then the intercept, (k + 1,).
    Features are centred first; one that is constant gets coefficient 0. A finite optimum must exist: targets strictly between 0
    and 1, or data that no hyperplane separates. Coefficients that are not finite raise InputError.

    >>> features, targets = np.array([[0.0], [1.0]]), np.array([0.25, 0.75])
    >>> fit_curve(features, targets, np.ones(2)).round(4)  # odds 1/3 and 3: intercept -ln 3, slope 2 ln 3
    array([ 2.1972, -1.0986])
    """
    total = weights.sum()
    centre = weights @ features / total
    deviation = np.sqrt(weights @ (features - centre) ** 2 / total)
    varies = deviation > 1e-13 * np.maximum(np.abs(centre), 1e-300)
    design = np.column_stack([(features - centre)[:, varies] / deviation[varies], np.ones(len(targets))])
    fit = fit_logistic(design, targets, weights)
    if not np.isfinite(fit.coefficients).all():
        raise InputError("the logistic fit did not converge; are the scores of very different sizes?")
    coefficients = np.zeros(features.shape[1] + 1)
    coefficients[:-1][varies] = fit.coefficients[:-1] / deviation[varies]
    coefficients[-1] = fit.coefficients[-1] - coefficients[:-1] @ centre
    return coefficients


def logistic_loss(value: Float64s, targets: Float64s, weights: Float64s) -> tuple[float, Float64s]:
    """Compute minus the weighted log likelihood of targets in [0, 1] at log odds `value`, and its probabilities expit(value).

    All arrays have shape (n,).

    >>> loss, probs = logistic_loss(np.zeros(2), np.array([0.0, 1.0]), np.ones(2))
    >>> round(loss, 4), probs  # 2 ln 2
    (1.3863, array([0.5, 0.5]))
    """
    softplus = np.maximum(value, 0.0) + np.log1p(np.exp(-np.abs(value)))
    return float(weights @ (softplus - targets * value)), expit(value)
