"""The predictions behind the numbers of a store: the same file, rows, classes and recalibration again."""

from pathlib import Path

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.study.run.fit import read_fit
from truecal.study.spec.rows import load_rows
from truecal.study.spec.spec import Columns
from truecal.study.spec.split import held_out
from truecal.study.store import Store, polars


def predictions_of(
    store: Store,
    model: str,
    dataset: str,
    recalibrator: str = "none",
    *,
    severity: float = 0.0,
    seed: int | None = None,
) -> tc.Predictions:
    """What a model said on the rows of a dataset that were judged; the prediction file must still be where it was."""
    if seed is not None:
        options.whole(seed, "seed", 0)
    pl = polars()
    meta, frame = store.meta(), store.frame()
    if not meta.get("files"):
        raise InputError("this store was imported: it holds numbers, and no predictions to go back to")
    results = frame.filter(
        (pl.col("model") == model) & (pl.col("dataset") == dataset) & (pl.col("severity") == severity)
    ).sort("seed")
    results = results if seed is None else results.filter(pl.col("seed") == seed)
    if not results.height:
        raise InputError(f"{model!r} has no results on {dataset!r} at severity {severity:g}")
    job = results["job"][0]
    how = meta["protocol"][job]
    rows = load_rows(Path(meta["files"][job]), Columns.of(meta["columns"]))
    kept = np.ones(len(rows), bool)
    if how["fraction"] is not None:
        kept = ~held_out(rows.labels, how["fraction"], how["split_seed"])
    subset = None if how["subset"] is None else tuple(how["subset"])
    if recalibrator == "none":
        return rows.predictions(kept, subset)
    if recalibrator not in how["fits"]:
        raise InputError(f"there is no recalibrator {recalibrator!r} in this study; there is {', '.join(how['fits'])}")
    fit = read_fit(store.folder / "fits" / f"{how['fits'][recalibrator]}.json")
    probs = None if fit is None else fit.apply(rows.judged(kept))
    if probs is None:
        raise InputError(f"{recalibrator} could not be fitted for {model!r}")
    return rows.predictions(kept, subset, probs)
