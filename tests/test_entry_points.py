"""Every public function, through every lens, on plain, weighted, clustered and selected rows: an answer, or a refusal by name.

A function that lost clusters, weights or a selection on the way would give here the answer of the plain rows.
"""

import inspect
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest

import truecal as tc
from truecal.inference import (
    consistency_test,
    hosmer_lemeshow,
    kuiper,
    rank_series_test,
    spiegelhalter,
)
from truecal.lenses import Lens

N, K = 240, 4


def predictions() -> tc.Predictions:
    """Overconfident predictions of four classes whose outcomes are correlated within 40 clusters."""
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(40), N // 40)
    probs = rng.dirichlet(np.full(K, 0.8), N)
    truth = probs**0.6 / (probs**0.6).sum(axis=1, keepdims=True)
    u = (rng.random(40)[clusters] * 0.7 + rng.random(N) * 0.3)[:, None]
    labels = (u > truth.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    columns = {"site": np.array(["north", "south"])[(np.arange(N) // 6) % 2], "cluster": clusters}
    return tc.Predictions.from_probs(probs, labels, columns=columns)


GROUPS = tc.Grouping({"a": [0, 1], "b": [2], "c": [3]})
LENSES: dict[str, Lens] = {
    "TopLabel": tc.TopLabel(),
    "OneClass": tc.OneClass(1),
    "ClassWise": tc.ClassWise(),
    "AllLabels": tc.AllLabels(),
    "TopK": tc.TopK(2),
    "Grouping": GROUPS,
    "Grouping.then": GROUPS.then(tc.TopLabel()),
    "Grouping.then(ClassWise)": GROUPS.then(tc.ClassWise()),
    "Canonical": tc.Canonical(),
}


def plain(preds: tc.Predictions) -> tc.Predictions:
    return preds


def weighted(preds: tc.Predictions) -> tc.Predictions:
    return tc.Predictions.from_probs(preds.probs, preds.labels, weights=1 + np.arange(N) % 3, columns=preds.columns)


def clustered(preds: tc.Predictions) -> tc.Predictions:
    return tc.Predictions.from_probs(
        preds.probs, preds.labels, clusters=preds.columns["cluster"], columns=preds.columns
    )


def selected(preds: tc.Predictions) -> tc.Predictions:
    return tc.by_column("site", "north")(preds)


KINDS = {"plain": plain, "weights": weighted, "clusters": clustered, "selection": selected}
EntryPoint = Callable[[tc.Predictions, Lens], object]


def numbers(answer: object) -> tuple[float, ...]:
    """What an answer says, as numbers."""
    if isinstance(answer, tc.Estimate):
        ends = () if answer.interval is None else (float(answer.interval.low), float(answer.interval.high))
        return (float(answer.value), *ends, -1.0 if answer.p_value is None else float(answer.p_value))
    if isinstance(answer, tuple):
        return tuple(float(x) for part in answer for x in np.ravel(np.asarray(part, float)))
    if hasattr(answer, "p_value"):
        return tuple(map(float, (*np.ravel(answer.statistic), *np.ravel(answer.p_value))))
    if hasattr(answer, "high"):
        return tuple(map(float, (*np.ravel(answer.low), *np.ravel(answer.high))))
    raise TypeError(type(answer))


def on_profile(test: Callable[..., object]) -> EntryPoint:
    return lambda preds, lens: test(lens(preds))


def compared(preds: tc.Predictions, lens: Lens) -> tuple[object, ...]:
    sharper = preds.probs**1.5 / (preds.probs**1.5).sum(axis=1, keepdims=True)
    comparison = tc.compare(
        preds.labels,
        preds.probs,
        sharper,
        lens=lens,
        sample_weight=preds.weights,
        clusters=preds.clusters,
        resamples=60,
    )
    return comparison.value_a, comparison.value_b, comparison.interval.low, comparison.interval.high, comparison.p_value


def grouped(preds: tc.Predictions, lens: Lens) -> tuple[object, ...]:
    table = tc.subgroups(preds, by="site", lens=lens, smallest=10)
    return tuple(x for e in table.estimates if e is not None for x in numbers(e))


def audited(preds: tc.Predictions, lens: Lens) -> tuple[object, ...]:
    search = tc.audit(preds, by="site", lens=lens, min_rows=10)
    return (*numbers(search.overall), *(x for s in search.segments for x in (s.difference, s.low, s.high, s.p_value)))


ENTRY_POINTS: dict[str, EntryPoint] = {
    "measure": lambda preds, lens: tc.measure(preds, lens=lens),
    "measure, binned": lambda preds, lens: tc.measure(preds, lens=lens, estimator=tc.BinnedECE(bins=5)),
    "measure, generalized": lambda preds, lens: tc.measure(
        preds, lens=lens, estimator=tc.GeneralizedECE(binning=tc.estimators.KDTree(0.2), replicates=40)
    ),
    "bootstrap": lambda preds, lens: tc.inference.bootstrap(
        tc.BinnedECE(bins=5), preds, lens=lens, resamples=60
    ).interval(),
    "below": lambda preds, lens: tc.inference.below(preds, 0.3, lens=lens),
    "band": lambda preds, lens: (lambda b: (b.low, b.high))(tc.inference.band(lens(preds))),
    "verify": lambda preds, lens: (lambda v: (v.low, v.high))(tc.verify(preds, 0.3, lens=lens)),
    "compare": compared,
    "subgroups": grouped,
    "audit": audited,
    "rank_series_test": lambda preds, lens: rank_series_test(preds, lens=lens, resamples=199),
    "hosmer_lemeshow": on_profile(lambda p: hosmer_lemeshow(p, bins=5, resamples=199)),
    "spiegelhalter": on_profile(lambda p: spiegelhalter(p, resamples=999)),
    "kuiper": on_profile(lambda p: kuiper(p, resamples=499)),
    "consistency_test": on_profile(lambda p: consistency_test(p, tc.BinnedECE(bins=5), resamples=199)),
    "Watch": lambda preds, lens: (lambda step: (step.log_e, step.error))(tc.Watch(0.0, lens=lens).update(preds)),
}
NOT_ENTRY_POINTS = {
    "summary": "one class, numbers of its own: see tests/clinical",
    "net_benefit": "one class, a decision: see tests/clinical",
    "flexible_curve": "a curve of one class: see tests/clinical",
    "censoring_weights": "makes weights",
    "rows_needed": "plans, judges nothing",
    "sample_size": "plans, judges nothing",
    "sample_size_by_simulation": "plans, judges nothing",
    "like": "names an estimator and a lens",
    "scorer": "measure for models of scikit-learn: see tests/inference/test_scorer.py",
    "calibration_error": "measure on arrays",
    "compare_many": "compare of more than two",
    "evaluate": "recalibrators, judged by measure",
    "choose_bins": "a choice of bins for a recalibrator",
    "scan": "rows that stay where they are: see tests/engines",
    "report": "draws what measure says: see tests/pages",
    "holm": "adjusts p-values",
    "conclude": "the verdict of an estimate: see tests/inference/test_conclusion.py",
    "worst_region": "a region of scores of one profile: see tests/inference/test_conclusion.py",
    "decision_loss": "one class, a decision: see tests/inference/test_decisions.py",
    "decompose_score": "parts of a proper score: see tests/inference/test_decisions.py",
    "stated_values": "regions of few distinct scores: see tests/inference/test_conclusion.py",
    "read": "reads Predictions",
    "likert": "its own lens: see tests/groups",
    "beyond_top": "its own lenses: see tests/groups",
    "sweep_granularity": "GeneralizedECE over many binnings",
    "by_column": "a selection",
    "by_label": "a selection",
    "by_output": "a selection",
}


def test_no_entry_point_and_no_lens_is_missing_from_the_table():
    homes = (tc, tc.inference, tc.groups, tc.clinical, tc.recalibration, tc.engines, tc.estimators)
    functions = {name for home in homes for name in home.__all__ if inspect.isfunction(getattr(home, name))}
    assert functions - {name.partition(",")[0] for name in ENTRY_POINTS} - set(NOT_ENTRY_POINTS) == set()
    kinds = [kind for kind in vars(import_module("truecal.lenses")).values() if inspect.isclass(kind)]
    lenses = [kind for kind in kinds if issubclass(kind, Lens) and not inspect.isabstract(kind)]
    assert {kind.__name__ for kind in lenses} <= {name.partition(".")[0] for name in LENSES}


def answered(entry_point: str, lens: str, kind: str) -> tuple[float, ...] | str:
    """The answer as numbers, or the words of its refusal."""
    try:
        return numbers(ENTRY_POINTS[entry_point](KINDS[kind](predictions()), LENSES[lens]))
    except tc.InputError as refusal:
        return str(refusal)


# Generalized errors of class-wise lenses have neither an interval nor a test, which is all that clusters change.
WITHOUT_INTERVAL = ("ClassWise", "Grouping.then(ClassWise)")


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_every_entry_point_through_every_lens(entry_point: str, lens: str) -> None:
    by_kind = {kind: answered(entry_point, lens, kind) for kind in KINDS}
    for kind, answer in by_kind.items():
        if isinstance(answer, str):
            assert len(answer) > 30, (kind, answer)  # a sentence that names what cannot be honoured
        else:
            assert np.isfinite(answer).all(), (kind, answer)
    whole = by_kind["plain"]
    if isinstance(whole, str):
        assert isinstance(
            by_kind["weights"], str
        )  # what plain rows are refused for does not work by accident elsewhere
        assert isinstance(by_kind["selection"], str)
        return
    for kind in ("weights", "clusters", "selection"):
        if kind == "clusters" and entry_point == "measure, generalized" and lens in WITHOUT_INTERVAL:
            continue
        assert by_kind[kind] != whole, f"{entry_point} through {lens} forgot the {kind}"


def test_the_table_can_fail():
    """A function that drops what belongs together gives the answer of plain rows; the table would say so."""
    forgetful = ENTRY_POINTS["measure"](plain(predictions()), tc.TopLabel())
    assert numbers(forgetful) == answered("measure", "TopLabel", "plain")
    assert answered("measure", "TopLabel", "clusters") != numbers(forgetful)
