"""Coverage of intervals from few trusted labels and a judge, of bands of decision losses, and of several labels per row.

    python -m benchmarks.new_methods judge --datasets 500 --out benchmarks/new_methods.jsonl

Cells that the file already holds are not computed again. `table` prints the file as a Markdown table.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtri

import truecal as tc
from truecal.scores import decisions

Array = npt.NDArray[np.float64]
World = tuple[Callable[[int, np.random.Generator], Array], Callable[[Array], Array]]  # scores, and P(y = 1 | score)
POPULATION = 400_000
THRESHOLDS = np.array([0.03, 0.08, 0.14, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.87, 0.93, 0.97])
DRAWS = 200  # of decision losses: half as many as by default, for speed
CLUSTER = 5  # rows, whose outcomes have a latent correlation of one half
WORDS = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
EIGHT_WORDS = np.array([0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.96])
EIGHT_SHARES = [0.2, 0.2, 0.15, 0.1, 0.1, 0.1, 0.1, 0.05]
STEPS = np.array([0.1, 0.3, 0.35, 0.8, 0.85])
FIVE_WORDS = np.array([0.55, 0.7, 0.8, 0.9, 0.97])


def temper(c: Array, slope: float, shift: float = 0.0) -> Array:
    """Change scores on the logit scale."""
    return np.asarray(expit(slope * logit(np.clip(c, 1e-9, 1 - 1e-9)) + shift))


def step(c: Array) -> Array:
    """Compute a curve that jumps from 0.3 to 0.7 at 1/2."""
    return np.where(c < 0.5, 0.6 * c, 0.4 + 0.6 * c)


JUDGED: dict[str, World] = {
    "even, c^1.5": (lambda k, r: r.random(k), lambda c: c**1.5),
    "six words": (lambda k, r: r.choice(WORDS, k, p=[0.1, 0.15, 0.2, 0.3, 0.2, 0.05]), lambda c: 0.6 * c + 0.2),
    "calibrated, skewed": (lambda k, r: r.beta(4, 1, k), lambda c: c),
    "calibrated, even": (lambda k, r: r.random(k), lambda c: c),
    "skewed, 0.85 c": (lambda k, r: r.beta(5, 0.4, k), lambda c: 0.85 * c),
    "overconfident": (lambda k, r: r.beta(0.7, 0.7, k), lambda c: temper(c, 0.5)),
    "rare": (lambda k, r: r.beta(1, 6, k), lambda c: 0.6 * c + 0.02),
    "shifted": (lambda k, r: r.beta(3, 2, k), lambda c: temper(c, 1.0, -0.5)),
    # The following are not among the worlds that anything was chosen on.
    "calibrated, rare": (lambda k, r: r.beta(0.5, 6, k), lambda c: c),
    "calibrated, two-sided": (lambda k, r: r.beta(0.4, 0.4, k), lambda c: c),
    "step": (lambda k, r: r.random(k), step),
    "five words": (lambda k, r: r.choice(FIVE_WORDS, k, p=[0.1, 0.2, 0.2, 0.3, 0.2]), lambda c: c**2),
    "saturated": (lambda k, r: r.beta(0.3, 0.3, k), lambda c: temper(c, 0.6, 0.3)),
}
DECIDED: dict[str, World] = {
    "calibrated, even": (lambda k, r: r.random(k), lambda c: c),
    "calibrated, rare": (lambda k, r: r.beta(0.6, 9, k), lambda c: c),
    "calibrated, saturated": (lambda k, r: r.beta(0.25, 0.35, k), lambda c: c),
    "calibrated, clusters": (lambda k, r: r.beta(1.5, 2, k), lambda c: c),
    "rare, too low": (lambda k, r: r.beta(0.7, 10, k), lambda c: temper(c, 1, 0.6)),
    "saturated": (lambda k, r: r.beta(0.25, 0.25, k), lambda c: temper(c, 0.5, -0.2)),
    "normal logits": (lambda k, r: expit(1.2 * r.standard_normal(k)), lambda c: temper(c, 0.7, 0.2)),
    "clusters": (lambda k, r: r.random(k), lambda c: temper(c, 0.6)),
    "steps": (lambda k, r: r.random(k), lambda c: STEPS[np.minimum((5 * c).astype(int), 4)]),
    "eight words": (lambda k, r: r.choice(EIGHT_WORDS, k, p=EIGHT_SHARES), lambda c: 0.1 + 0.7 * c),
    "strongly overconfident": (lambda k, r: expit(3 * r.standard_normal(k)), lambda c: temper(c, 0.35)),
    "shifted": (lambda k, r: r.beta(2, 4, k), lambda c: c**1.3),
}
CHANGED = {"sharper": (1.4, 0.0), "recalibrated": (0.7, 0.2), "shifted": (1.0, 0.6), "the same": (1.0, 0.0)}
JUDGES = ("0.7", "0.9", "0.98", "biased", "by score", "noise")
SIZES = ((100, 1000), (300, 5000), (1000, 50_000))


def draw_verdicts(kind: str, y: Array, c: Array, rng: np.random.Generator) -> Array:
    """Draw verdicts of a judge: right with a given rate, biased, right more often where the score is high, or noise."""
    if kind == "biased":  # accepts 35 % of the wrong answers
        return np.where(y == 1, rng.random(len(y)) < 0.95, rng.random(len(y)) < 0.35).astype(float)
    rates = {"by score": 0.6 + 0.38 * c, "noise": np.full(len(y), 0.5)}
    right = rng.random(len(y)) < (rates[kind] if kind in rates else float(kind))
    return np.where(right, y, 1 - y)


def judge_cell(world: str, size: str, kind: str, datasets: int) -> dict[str, float]:
    """Measure coverage of 90 % intervals, width relative to the trusted labels alone, and the rate of rejection at 5 %."""
    scores, curve = JUDGED[world]
    n, rows = map(int, size.split("/"))
    population = scores(POPULATION, np.random.default_rng(1))
    true, rng = float(np.sqrt(np.mean((curve(population) - population) ** 2))), np.random.default_rng(7)
    answers: list[list[float]] = []
    for _ in range(datasets):
        c = scores(rows, rng)
        y = (rng.random(rows) < curve(c)).astype(float)
        verdicts, trusted = draw_verdicts(kind, y, c, rng), rng.choice(rows, n, replace=False)
        labels = np.full(rows, np.nan)
        labels[trusted] = y[trusted]
        both = tc.calibration_error(labels, c, judge=verdicts, level=0.9)
        alone = tc.calibration_error(y[trusted].astype(int), c[trusted], level=0.9)
        ends = [(float(e.interval.low), float(e.interval.high)) for e in (both, alone) if e.interval is not None]
        answers.append([*ends[0], *ends[1], float(both.p_value or 0.0), both.value])
    low, high, low_alone, high_alone, p, value = np.array(answers).T
    return {
        "true": true,
        "value": float(value.mean()),
        "coverage": float(np.mean((low <= true) & (true <= high))),
        "above": float(np.mean(low > true)),
        "alone": float(np.mean((low_alone <= true) & (true <= high_alone))),
        "width": float((high - low).mean() / (high_alone - low_alone).mean()),
        "rejected": float(np.mean(p <= 0.05)),
    }


def draw_outcomes(rates: Array, clusters: npt.NDArray[np.intp] | None, rng: np.random.Generator) -> Array:
    """Draw outcomes with the given rates, independent or correlated within clusters."""
    if clusters is None:
        return (rng.random(len(rates)) < rates).astype(float)
    shared = rng.standard_normal(clusters.max() + 1)[clusters]
    return (np.sqrt(0.5) * (shared + rng.standard_normal(len(rates))) < ndtri(rates)).astype(float)


def true_losses(population: Array, rates: Array) -> Array:
    """Compute what the best cut of the scores of a population saves at every threshold, (T,), where rates rise with the scores."""
    order = np.argsort(population)
    population, rates = population[order], rates[order]
    is_cut = np.concatenate([[True], population[1:] > population[:-1], [True]])
    losses = []
    for t, position in zip(THRESHOLDS, np.searchsorted(population, THRESHOLDS), strict=True):
        savings = np.concatenate([np.cumsum((rates - t)[::-1])[::-1], [0.0]]) / len(population)
        losses.append(savings[is_cut].max() - savings[position])
    return np.array(losses)


def decision_cell(world: str, size: str, _: str, datasets: int) -> dict[str, float]:
    """Measure how often the 95 % band holds the whole curve of losses, and how often the test rejects at 5 %."""
    scores, curve = DECIDED[world]
    population = scores(POPULATION, np.random.default_rng(1))
    n, true = int(size), true_losses(population, curve(population))
    rng = np.random.default_rng([n, 771, list(DECIDED).index(world)])
    clusters, answers = np.arange(n) // CLUSTER if "clusters" in world else None, []
    for k in range(datasets):
        c = scores(n, rng)
        y = draw_outcomes(curve(c), clusters, rng)
        with patch.object(decisions, "_REDRAWS", DRAWS):
            loss = tc.decision_loss(y, c, THRESHOLDS, clusters=clusters, rng=k)
        assert isinstance(loss, tc.scores.DecisionLoss)
        below, above = (loss.low <= true + 1e-9).all(), (loss.high >= true - 1e-9).all()
        points = (loss.point_low <= true + 1e-9) & (loss.point_high >= true - 1e-9)
        width, bias = (loss.high - loss.low).mean(), (loss.loss - true).mean()
        answers.append([below and above, not below, not above, loss.p_value <= 0.05, points.mean(), width, bias])
    names = ("coverage", "above", "below", "rejected", "pointwise", "width", "bias")
    return {"true": float(true.max()), **dict(zip(names, np.mean(answers, axis=0).tolist(), strict=True))}


def difference_cell(world: str, size: str, _: str, datasets: int) -> dict[str, float]:
    """Measure how often the 95 % band holds the difference of the losses of even scores and of the same on another logit scale."""
    rng, population = np.random.default_rng([int(size), 772]), np.random.default_rng(1).random(POPULATION)
    rates, answers = temper(population, 0.7, 0.2), []
    true = true_losses(population, rates) - true_losses(temper(population, *CHANGED[world]), rates)
    for k in range(datasets):
        c = rng.random(int(size))
        y = rng.random(len(c)) < temper(c, 0.7, 0.2)
        models = {name: tc.Predictions.from_probs(p, y) for name, p in (("a", c), ("b", temper(c, *CHANGED[world])))}
        with patch.object(decisions, "_REDRAWS", DRAWS):
            losses = tc.decision_loss(models, THRESHOLDS, rng=k)
        assert isinstance(losses, tc.scores.DecisionLosses)
        (difference,) = losses.differences
        inside = (difference.low <= true + 1e-9).all() and (difference.high >= true - 1e-9).all()
        answers.append([inside, difference.p_value <= 0.05, (difference.high - difference.low).mean()])
    names = ("coverage", "rejected", "width")
    return {"true": float(np.abs(true).max()), **dict(zip(names, np.mean(answers, axis=0).tolist(), strict=True))}


def multilabel_cell(world: str, size: str, _: str, datasets: int) -> dict[str, float]:
    """Measure coverage of 90 % intervals where labels of one row share 60 % of their latent variance."""
    rows, columns = map(int, size.split("x"))
    grid = (np.arange(10**5) + 0.5) / 10**5
    true, lens = float(np.sqrt(np.mean((grid**1.5 - grid) ** 2))), tc.AllLabels() if world == "pooled" else None
    inside, rejected = [], []
    for seed in range(datasets):
        rng = np.random.default_rng(seed)
        p, shared = rng.random((rows, columns)), rng.normal(size=(rows, 1))
        latent = np.sqrt(0.6) * shared + np.sqrt(0.4) * rng.normal(size=(rows, columns))
        bent, calibrated = (tc.Predictions.from_multilabel(p, latent < ndtri(rate)) for rate in (p**1.5, p))
        interval = tc.measure(bent, level=0.9, lens=lens).interval
        assert interval is not None
        inside.append(interval.low <= true <= interval.high)
        rejected.append(float(tc.measure(calibrated, lens=lens).p_value or 0.0) <= 0.05)
    return {"true": true, "coverage": float(np.mean(inside)), "rejected": float(np.mean(rejected))}


CELLS: dict[str, tuple[Callable[..., dict[str, float]], list[tuple[str, str, str]]]] = {
    "judge": (judge_cell, [(w, f"{n}/{rows}", j) for n, rows in SIZES for j in JUDGES for w in JUDGED]),
    "decision": (decision_cell, [(w, n, "") for n in ("300", "1000", "5000") for w in DECIDED]),
    "difference": (difference_cell, [(world, "800", "") for world in CHANGED]),
    "multilabel": (multilabel_cell, [(w, n, "") for n in ("300x5", "400x20") for w in ("class-wise", "pooled")]),
}


def markdown(records: list[dict[str, Any]]) -> Iterator[str]:
    """Write one table per kind of cell: means over worlds, and the worst of them."""
    for kind in CELLS:
        groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for record in records:
            if record["kind"] == kind:
                groups.setdefault((record["size"], record["variant"] or kind), []).append(record)
        if not groups:
            continue
        header = "size", "variant", "datasets", "coverage: mean (worst)", "width", "rejected if calibrated"
        yield f"\n## {kind}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}"
        for (size, variant), cells in groups.items():
            coverage = [cell["coverage"] for cell in cells]
            null = [cell["rejected"] for cell in cells if cell["true"] < 1e-9 or kind == "multilabel"]
            width = f"{np.mean([cell['width'] for cell in cells]):.2f}" if kind == "judge" else ""
            worst = cells[int(np.argmin(coverage))]["world"]
            yield (
                f"| {size} | {variant} | {cells[0]['datasets']} | {np.mean(coverage):.3f} ({min(coverage):.3f}, {worst}) | "
                f"{width} | {', '.join(f'{rate:.3f}' for rate in null)} |"
            )


def main() -> None:
    """Compute the cells that are missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=[*CELLS, "table"])
    parser.add_argument("--datasets", type=int, default=500)
    parser.add_argument("--only", default="", help="part of the name of a cell")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    options = parser.parse_args()
    records = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    if options.kind == "table":
        print("\n".join(markdown(records)))
        return
    compute, cells = CELLS[options.kind]
    done = {(r["kind"], r["world"], r["size"], r["variant"]) for r in records}
    for world, size, variant in cells:
        if (options.kind, world, size, variant) in done or options.only not in f"{world} {size} {variant}":
            continue
        names = {"kind": options.kind, "world": world, "size": size, "variant": variant, "datasets": options.datasets}
        numbers = compute(world, size, variant, options.datasets)
        with options.out.open("a") as file:
            file.write(json.dumps({**names, **{key: round(value, 4) for key, value in numbers.items()}}) + "\n")


if __name__ == "__main__":
    main()
