"""A store in memory, with the columns of a real one: simulated models whose numbers are easy to check."""

from itertools import product

import numpy as np
import polars as pl

from tests.pages.examples import LONG, NASTY
from truecal.study import Store
from truecal.study.store import DIAGRAMS, DRAWS, RESULTS

METRICS = {
    "error": ("", None, None, None),
    "nll": ("", None, None, None),
    "rank-series-l2": ("top-label", None, None, 2.0),
    "ece-mass-100-l1": ("top-label", "mass", 100, 1.0),
    "ece-width-15-max": ("class-wise", "width", 15, np.inf),
}


class FakeStore(Store):
    """What the page asks of a store."""

    def __init__(self, results, diagrams, name="A study"):
        self.results, self.bins, self.title = results, diagrams, name

    def frame(self):
        return self.results

    def diagrams(self):
        return self.bins

    def draws(self):
        return table([], DRAWS)

    def references(self):
        return {}

    def fits(self):
        kinds = {"model": pl.String, "dataset": pl.String, "temperature": pl.Float64, "rows": pl.Int64}
        rows = [(model, "digits", 1.0 + i / 10, 100) for i, model in enumerate(sorted(set(self.results["model"])))]
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def meta(self):
        return {"version": 1, "name": self.title, "study": {}, "jobs": [], "truecal": "0"}


def table(rows, columns):
    kinds = {name: getattr(pl, kind) if hasattr(pl, kind) else pl.List(pl.Float32) for name, kind in columns.items()}
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in columns}, schema=kinds)


def fake_store(
    models=None,
    *,
    families=("linear", "trees", "mlp"),
    datasets=("digits", "wine"),
    severities=(0.0, 1.0, 2.0),
    seeds=(0, 1),
    recalibrators=("none", "temperature"),
    metrics=METRICS,
    lenses=("top-label", "class-wise"),
    name="A study",
    seed=0,
):
    """Numbers that depend on everything, so that a wrong look-up is a wrong number."""
    rng = np.random.default_rng(seed)
    if models is None:
        models = [NASTY, LONG, *(f"model {k}" for k in range(7))]
    rows, bins = [], []
    for (i, model), dataset, severity, run in product(enumerate(models), datasets, severities, seeds):
        job = f"{i}-{dataset}-{severity}-{run}"
        position = {
            "job": job,
            "model": model,
            "dataset": dataset,
            "severity": severity,
            "seed": run,
            "selection": "all",
        }
        position |= {"family": families[i % len(families)], "size": float(10 ** (1 + i % 4)), "n": 900, "warnings": ""}
        error = 0.05 + 0.1 * rng.random() + 0.08 * severity
        for recalibrator, (metric, (lens, scheme, count, norm)) in product(recalibrators, metrics.items()):
            value = error if metric == "error" else rng.random() * 0.1 + 0.02 * severity
            about = {"recalibrator": recalibrator, "lens": lens, "metric": metric, "scheme": scheme, "bins": count}
            ends = {} if metric == "nll" else {"low": 0.7 * value, "high": 1.3 * value, "level": 0.95}
            rows.append(position | about | {"norm": norm, "value": value} | ends)
        for recalibrator, lens, scheme in product(recalibrators, lenses, ("mass", "width")):
            confidence = np.sort(rng.uniform(0.3, 1, 15))
            outcome = np.round(np.clip(confidence + rng.normal(0, 0.05, 15), 0, 1) * 60) / 60
            about = {"job": job, "recalibrator": recalibrator, "lens": lens, "selection": "all", "scheme": scheme}
            bins += [
                about | {"bin": b, "low": 0.0, "high": 1.0, "count": 60.0, "confidence": c, "outcome": o}
                for b, (c, o) in enumerate(zip(confidence, outcome, strict=True))
            ]
    return FakeStore(table(rows, RESULTS), table(bins, DIAGRAMS), name)
