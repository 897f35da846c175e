"""truecal's answers to the cases: `python -m conformance.run` prints every case that it misses and ends with 1 if there is one."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import truecal as tc

FOLDER = Path(__file__).parent / "cases"
Case = dict[str, Any]


def cases(name: str = "*") -> Iterator[tuple[Case, dict[str, Any]]]:
    """Every case with its dataset, of all files or one."""
    for path in sorted(FOLDER.glob(f"{name}.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        for case in document["cases"]:
            yield case, document["datasets"][case["data"]]


def predictions(data: dict[str, Any]) -> tc.Predictions:
    """The dataset in the precision it is given in."""
    weights = data.get("weights")
    if data["kind"] == "logits":
        return tc.Predictions.from_logits(np.array(data["logits"], data["precision"]), data["labels"], weights=weights)
    key, labels = ("scores", "outcomes") if data["kind"] == "scores" else ("probs", "labels")
    return tc.Predictions.from_probs(np.array(data[key], data["precision"]), data[labels], weights=weights)


def estimator(definition: dict[str, Any]) -> Any:
    """The estimator of a definition."""
    chosen = {k: np.inf if v == "inf" else v for k, v in definition.items() if k != "name"}
    if definition["name"] == "generalized":
        tree = chosen["binning"] == "tree"
        binning = tc.estimators.KDTree(chosen["fraction"]) if tree else tc.estimators.EqualWidth(chosen["bins"])
        return tc.GeneralizedECE(binning=binning, distance=tc.estimators.TotalVariation(), norm=chosen["norm"])
    classes: dict[str, Callable[..., Any]] = {
        "binned": tc.BinnedECE,
        "label-binned": tc.estimators.LabelBinnedECE,
        "debiased": tc.DebiasedECE,
        "sweep": tc.SweepECE,
        "nearest": tc.NearestECE,
        "isotonic": tc.estimators.IsotonicError,
        "smooth": tc.SmoothECE,
    }
    return classes[definition["name"]](**chosen)


def lens(named: dict[str, Any] | None) -> Any:
    """The lens of a case."""
    if named is None:
        return None
    lenses: dict[str, Callable[[], Any]] = {
        "top-label": tc.TopLabel,
        "all-labels": tc.AllLabels,
        "class-wise": tc.ClassWise,
        "one-class": lambda: tc.OneClass(named["class"]),
        "canonical": tc.Canonical,
        "top-k": lambda: tc.TopK(named["k"]),
        "grouping": lambda: tc.Grouping({f"group {i}": g for i, g in enumerate(named["groups"])}),
    }
    return lenses[named["name"]]()


def answer(case: Case, data: dict[str, Any]) -> float:
    """truecal's value for a case."""
    if case["definition"]["name"] == "temperature":
        return float(tc.recalibration.TemperatureScaling().fit(np.array(data["logits"]), data["labels"]).temperature_)
    if "lens" not in case:
        profile = tc.profile.Profile.from_arrays(
            np.array(data["scores"], data["precision"]), data["outcomes"], data.get("weights")
        )
        return float(estimator(case["definition"])(profile).value)
    return float(tc.measure(predictions(data), estimator=estimator(case["definition"]), lens=lens(case["lens"])).value)


def misses(ask: Callable[[Case, dict[str, Any]], float] = answer) -> Iterator[str]:
    """The cases on which an implementation is off by more than the tolerance."""
    for case, data in cases():
        value, expected = ask(case, data), float(case["expected"]["value"])
        if not abs(value - expected) <= case["tolerance"] * max(1.0, abs(expected)):
            yield f"{case['id']}: {value!r} instead of {expected!r}"


if __name__ == "__main__":
    disagreements = list(misses())
    print(
        *disagreements,
        f"{sum(1 for _ in cases()) - len(disagreements)} cases agree, {len(disagreements)} do not",
        sep="\n",
    )
    sys.exit(bool(disagreements))
