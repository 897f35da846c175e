"""Write the cases: `python -m conformance.make` computes every expected value and writes conformance/cases/*.json.

With --check nothing is written, and the exit code says whether the files are what this program computes.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import mpmath

from conformance.datasets import DATASETS, LOGITS, PROBS, SCORES, Dataset
from conformance.exact import errors, lenses
from conformance.exact.bins import Rows
from conformance.exact.numbers import DIGITS, Number, text, written
from conformance.exact.smooth import smooth

FOLDER = Path(__file__).parent / "cases"
VERSION = 1
DYADIC = ("ties", "shuffled ties", "zeros and ones", "calibrated", "fine", "one row", "two rows", "all tied")
FEW = (
    "plain",
    "ties",
    "zeros and ones",
    "tenths float64",
    "counts",
    "repeated",
    "importance",
    "one row",
    "coarse",
    "fine",
    "skewed",
    "all wrong",
)
INF = "inf"

Case = dict[str, Any]
Definition = dict[str, Any]


def options(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Every combination of the choices."""
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def exact_weights(data: Dataset) -> list[Fraction] | None:
    return [Fraction(w) for w in data["weights"]] if "weights" in data else None


def rows_of(data: Dataset) -> Rows:
    return Rows([Fraction(c) for c in data["scores"]], data["outcomes"], exact_weights(data), data["precision"])


def predictions_of(data: Dataset) -> lenses.Predictions:
    if data["kind"] == "scores":
        exact = [Fraction(c) for c in data["scores"]]
        return lenses.binary(exact, data["outcomes"], exact_weights(data), data["precision"])
    if data["kind"] == "logits":
        # 50 digits of the softmax, as a fraction: what is left out is far below any tolerance.
        probs = [tuple(Fraction(text(p)) for p in lenses.softmax([Fraction(z) for z in row])) for row in data["logits"]]
    else:
        probs = [tuple(Fraction(p) for p in row) for row in data["probs"]]
    return lenses.Predictions(probs, data["labels"], exact_weights(data), data["precision"])


def power(definition: Definition, rows: Rows) -> Number:
    """The p-th power of an error of one probability."""
    chosen = {key: float("inf") if value == INF else value for key, value in definition.items() if key != "name"}
    functions: dict[str, Callable[..., Number]] = {
        "binned": errors.binned,
        "label-binned": errors.label_binned,
        "debiased": errors.debiased,
        "sweep": errors.sweep,
        "nearest": errors.nearest,
        "isotonic": errors.isotonic,
        "smooth": smooth,
    }
    return functions[definition["name"]](rows, **chosen)


def norm_of(definition: Definition) -> float:
    fixed = {"isotonic": 2.0, "smooth": 1.0}
    return float(fixed.get(definition["name"], definition.get("norm", 1)))


def case(
    data: str,
    definition: Definition,
    expected: dict[str, str],
    lens: Definition | None = None,
    tolerance: float = 1e-12,
) -> Case:
    parts = [
        data,
        *(
            f"{v}" if k == "name" else f"{k} {v}"
            for k, v in {
                **(lens or {}),
            }.items()
        ),
    ]
    parts += [f"{v}" if k == "name" else f"{k} {v}" for k, v in definition.items()]
    record: Case = {"id": ", ".join(parts), "data": data}
    if lens is not None:
        record["lens"] = lens
    return {**record, "definition": definition, "expected": expected, "tolerance": tolerance}


def of_scores(
    name: str, variants: list[dict[str, Any]], datasets: tuple[str, ...], tolerance: float = 1e-12
) -> Iterator[Case]:
    """One definition in several variants on several datasets of one probability."""
    for data in datasets:
        for variant in variants:
            definition = {"name": name, **variant}
            value = power(definition, rows_of(SCORES[data]))
            yield case(data, definition, written(value, norm_of(definition)), tolerance=tolerance)


def binned() -> Iterator[Case]:
    variants = [
        *options(scheme=("width",), bins=(10,), closed=("left", "right"), norm=(1, 2, INF)),
        *options(scheme=("width",), bins=(15,), closed=("left", "right"), norm=(1,)),
        *options(scheme=("width",), bins=(100,), closed=("left",), norm=(1,)),
        *options(scheme=("mass",), bins=(5,), ties=("keep", "split"), norm=(1, 2)),
        *options(scheme=("mass",), bins=(15,), ties=("keep",), norm=(INF,)),
    ]
    yield from of_scores("binned", variants, tuple(SCORES))


def other_bins() -> Iterator[Case]:
    label = [
        *options(scheme=("width",), bins=(10,), norm=(1, 2, INF)),
        *options(scheme=("mass",), bins=(5,), ties=("keep", "split"), norm=(1,)),
    ]
    yield from of_scores("label-binned", label, FEW)
    debiased = [
        *options(bins=(5,), norm=(2,), correction=("kumar", "exact")),
        *options(bins=(5,), norm=(1,)),
        *options(bins=(15,), norm=(2,), ties=("split",)),
    ]
    yield from of_scores("debiased", debiased, FEW)
    sweep = [*options(scheme=("mass",), norm=(2,), ties=("keep", "split")), *options(scheme=("width",), norm=(1,))]
    yield from of_scores("sweep", sweep, (*FEW, "reversed", "calibrated"))


def without_bins() -> Iterator[Case]:
    yield from of_scores("nearest", options(neighbors=(1, 3, 7), norm=(1, 2)), DYADIC)
    yield from of_scores("isotonic", [{}], tuple(SCORES))
    # Implementations work on a grid; ours has 8192 cells.
    for_smooth = ("plain", "ties", "zeros and ones", "counts", "all wrong", "one row", "reversed", "coarse")
    yield from of_scores("smooth", [{}], for_smooth, tolerance=2e-4)


def several_classes() -> Iterator[Case]:
    one = [
        {"name": "binned", "scheme": "width", "bins": 10, "closed": "left", "norm": 1},
        {"name": "binned", "scheme": "mass", "bins": 3, "ties": "keep", "norm": 2},
    ]
    binary = {name: SCORES[name] for name in ("zeros and ones", "tenths float64", "tenths float32", "coarse")}
    for data, definition in product({**PROBS, **LOGITS, **binary}, one):
        preds = predictions_of(DATASETS[data])
        norm = norm_of(definition)
        yield case(data, definition, written(power(definition, lenses.top_label(preds)), norm), {"name": "top-label"})
        if data in LOGITS or data in binary:
            continue
        yield case(data, definition, written(power(definition, lenses.all_labels(preds)), norm), {"name": "all-labels"})
        joint = lenses.class_wise(preds, lambda rows, chosen=definition: power(chosen, rows))
        yield case(data, definition, written(joint, norm), {"name": "class-wise"})
        for k in range(preds.classes):
            expected = written(power(definition, lenses.one_class(preds, k)), norm)
            yield case(data, definition, expected, {"name": "one-class", "class": k})


def several_at_once() -> Iterator[Case]:
    """Several probabilities of a row at once, total variation distance."""
    for data in ("three classes", "class never seen", "tied tops", "four classes"):
        preds = predictions_of(PROBS[data])
        groups = [[0], [1], list(range(2, preds.classes))] if preds.classes > 3 else [[0, 1], [2]]
        views = [
            ({"name": "canonical"}, lenses.canonical(preds)),
            ({"name": "top-k", "k": 2}, lenses.top_k(preds, 2)),
            ({"name": "grouping", "groups": groups}, lenses.grouping(preds, groups)),
        ]
        for lens, (vectors, events) in views:
            bins = [({"binning": "tree", "fraction": 0.5}, lenses.tree_bins(vectors, Fraction(1, 2)))]
            if len(vectors[0]) > 2:
                bins.append(({"binning": "grid", "bins": 4}, lenses.grid_bins(vectors, 4)))
            for (binning, members), norm in product(bins, (1, INF)):
                definition = {"name": "generalized", **binning, "distance": "total variation", "norm": norm}
                value = lenses.generalized(vectors, events, members, float(norm))
                yield case(data, definition, written(value, float(norm)), lens)


def temperatures() -> Iterator[Case]:
    for data in ("ordinary", "shifted"):
        exact = [[Fraction(z) for z in row] for row in LOGITS[data]["logits"]]
        value = lenses.temperature(exact, LOGITS[data]["labels"])
        yield case(data, {"name": "temperature"}, {"value": text(value)}, tolerance=1e-9)


FILES: dict[str, Callable[[], Iterator[Case]]] = {
    "binned": binned,
    "other-bins": other_bins,
    "without-bins": without_bins,
    "several-classes": several_classes,
    "several-at-once": several_at_once,
    "temperature": temperatures,
}


def document(name: str) -> str:
    """The text of one file of cases, with the datasets that they use."""
    with mpmath.workdps(DIGITS + 10):
        cases = list(FILES[name]())
    used = {c["data"]: DATASETS[c["data"]] for c in cases}
    head = json.dumps({"version": VERSION, "datasets": used}, indent=1)[:-2]
    lines = ",\n  ".join(json.dumps(c) for c in cases)
    return f'{head},\n "cases": [\n  {lines}\n ]\n}}\n'


def main(arguments: list[str] | None = None) -> int:
    """Write or check all files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", default=list(FILES))
    parsed = parser.parse_args(arguments)
    stale = []
    for name in parsed.names:
        path, content = FOLDER / f"{name}.json", document(name)
        if parsed.check and (not path.is_file() or path.read_text(encoding="utf-8") != content):
            stale.append(path.name)
        elif not parsed.check:
            path.write_text(content, encoding="utf-8")
    if stale:
        print(f"not what conformance.make computes: {', '.join(stale)}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
