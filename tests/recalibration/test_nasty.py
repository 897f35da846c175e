"""Every map on every nasty input: rows that are distributions, or an error of ours; never a crash, a NaN or silent nonsense."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from tests.recalibration.test_contract import MAKERS, Maker, probabilities
from tests.simulations import datasets
from truecal.errors import InputError, TruecalWarning

Array = NDArray[np.float64]
Case = tuple[Array, NDArray[np.int64], Array | None]  # logits, labels, weights


def draw(n: int = 60, classes: int = 4) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(n, classes))
    return logits, (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def without_a_class() -> Case:
    logits, labels = draw()
    return logits[labels != 2], labels[labels != 2], None


def ruled_out() -> Case:
    """Saturated rows, one of them wrong."""
    logits, labels = draw()
    logits[:10] = np.where(np.eye(4)[labels[:10]] > 0, 0.0, -np.inf)
    labels[0] = (labels[0] + 1) % 4
    return logits, labels, None


def weights(scale: float) -> Case:
    """Some rows weigh nothing, some a million times as much as others."""
    logits, labels = draw()
    return logits, labels, scale * np.random.default_rng(1).choice([0.0, 1e-3, 1.0, 1e3], 60)


CASES: dict[str, Callable[[], Case]] = {
    "separable": lambda: (draw()[0], draw()[0].argmax(axis=1), None),
    "reversed": lambda: (-draw()[0], draw()[1], None),
    "constant": lambda: (np.zeros((60, 4)), draw()[1], None),
    "two rows": lambda: (np.array([[5.0, 0, 0, 0], [0, 5.0, 0, 0]]), np.array([0, 1]), None),
    "two rows, wrong": lambda: (np.array([[5.0, 0, 0, 0], [0, 5.0, 0, 0]]), np.array([1, 0]), None),
    "a class missing": without_a_class,
    "half precision": lambda: (draw()[0].astype(np.float16), draw()[1], None),
    "logits of 1e4": lambda: (1e4 * draw()[0], draw()[1], None),
    "logits of 1e-6": lambda: (1e-6 * draw()[0], draw()[1], None),
    "ruled out": ruled_out,
    "weights": lambda: weights(1.0),
    "tiny weights": lambda: weights(1e-12),
    "equal rows": lambda: (np.repeat([[1.0, 0, 0, 0], [0, 0, 0, 2.0]], 30, axis=0), np.tile([0, 3, 3], 20), None),
}
every_map = pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: type(maker()).__name__)


def fitted_probabilities(maker: Maker, kind: str, case: Case, **options: object) -> Array | None:
    """What the map makes of the rows it was fitted on, or None where it refuses."""
    logits, labels, weight = case
    X = logits if kind == "logits" else probabilities(logits.astype(np.float64)).astype(logits.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruecalWarning)
        try:
            return maker(input=kind, **options).fit(X, labels, weight).predict_proba(X)
        except InputError:
            return None


@every_map
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_distributions_or_a_refusal(maker: Maker, kind: str) -> None:
    failed = {}
    for name, make in CASES.items():
        case = make()
        if reason := what_is_wrong(fitted_probabilities(maker, kind, case), case, name, kind):
            failed[name] = reason
    assert not failed


def what_is_wrong(probs: Array | None, case: Case, name: str, kind: str) -> str:
    """Why these are not probabilities of the rows that they were fitted on; empty if they are."""
    if probs is None:
        # rows that every map can learn from are never refused; probabilities of logits of 1e4 are 0 and 1
        may = name in ("two rows", "two rows, wrong", "ruled out") or (name, kind) == ("logits of 1e4", "probs")
        return "" if may else "refused"
    if probs.shape != case[0].shape:
        return f"shape {probs.shape}"
    if not (np.isfinite(probs).all() and (probs >= 0).all() and np.allclose(probs.sum(axis=1), 1, rtol=1e-9, atol=0)):
        return "no distributions"
    labels, weight = case[1], np.ones(len(probs)) if case[2] is None else case[2]
    mask = probs[np.arange(len(labels)), labels][weight > 0]
    loss = np.average(-np.log(mask), weights=weight[weight > 0])
    # no nonsense: on the rows it was fitted on, not much worse than knowing nothing
    return "" if loss < np.log(4) + 1 else f"log loss {loss}"


@every_map
def test_what_was_learned_from_separable_rows_still_says_the_labels(maker: Maker) -> None:
    case = CASES["separable"]()
    probs = fitted_probabilities(maker, "logits", case)
    assert probs is not None
    assert (probs.argmax(axis=1) == case[1]).mean() > 0.75


@every_map
def test_the_predicted_classes_of_huge_logits_are_no_nonsense(maker: Maker) -> None:
    """The scale of logits is arbitrary: a map of logits is as good at 1e4 times the scale, up to rounding of the curves."""
    logits, labels, _ = CASES["logits of 1e4"]()
    probs = fitted_probabilities(maker, "logits", (logits, labels, None))
    assert probs is not None
    assert probs[np.arange(60), labels].mean() > 0.3


@every_map
def test_names_are_labels_as_numbers_are(maker: Maker) -> None:
    logits, labels = draw(200, 3)
    names = np.array(["b", "ä", "c"])
    named = fitted_probabilities(maker, "probs", (logits, names[labels], None), classes=names.tolist())
    plain = fitted_probabilities(maker, "probs", (logits, labels, None))
    assert named is not None
    assert plain is not None
    assert_allclose(named, plain[:, np.argsort(names)], rtol=1e-9)


@every_map
def test_half_precision_is_read_and_not_computed_with(maker: Maker) -> None:
    logits, labels = draw()
    half = logits.astype(np.float16)
    single = fitted_probabilities(maker, "logits", (half, labels, None))
    double = fitted_probabilities(maker, "logits", (half.astype(np.float64), labels, None))
    assert single is not None
    assert double is not None
    assert_allclose(single, double, atol=1e-4)


@pytest.mark.slow
@every_map
@pytest.mark.parametrize("kind", ["logits", pytest.param("probs", marks=pytest.mark.full)])
def test_a_thousand_classes(maker: Maker, kind: str) -> None:
    """A fifth of them where simulations draw a fifth of their datasets."""
    logits, labels = draw(300, datasets(1000))
    logits[np.arange(300), labels] += 4
    probs = fitted_probabilities(maker, kind, (logits, labels, None))
    if probs is not None:
        assert np.isfinite(probs).all()
        assert_allclose(probs.sum(axis=1), 1, rtol=1e-9)
