"""What calls are made of: small datasets by name, containers that must not change an answer, and values for every parameter.

All values are Python expressions, so that a call can be printed, repeated and shortened. `GOOD` are values a careful caller gives,
`TOGETHER` arguments of one function that make sense together, `BAD` those that must be refused, `ODD` those of which nothing is
known but that no foreign exception may come of them.
"""

from collections import deque
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
STEERING = "b\x1b[31m\u202e"  # a name that would turn a terminal red, and its text around
SIZES = (1, 2, 3, 5, 20, 20, 60, 60, 200, 200)


def _swapped(a: Array) -> Array:
    return a.astype(a.dtype.newbyteorder(">"))


def _read_only(a: Array) -> Array:
    b = a.copy()
    b.flags.writeable = False
    return b


def _apart(a: Array) -> Array:
    """The same values, not next to each other in memory."""
    return np.repeat(a, 2, axis=0)[::2]


def _objects(a: Array) -> Array:
    return a.astype(object)


def _tensor(a: Array) -> Any:
    import torch

    return torch.tensor(a, requires_grad=a.dtype.kind == "f")


def _pandas(a: Array) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    return pd.Series(a, index=range(len(a), 0, -1)) if a.ndim == 1 else pd.DataFrame(a)


def _polars(a: Array) -> Any:
    import polars as pl

    return pl.Series(a) if a.ndim == 1 else pl.DataFrame(a)


def _nullable(a: Array) -> Any:
    """The types of pandas that know missing values."""
    import pandas as pd

    return (pd.DataFrame(a) if a.ndim > 1 else pd.Series(a)).convert_dtypes()


def _chunked(a: Array) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]

    return (
        pa.chunked_array([a[:1], a[1:]])
        if a.ndim == 1
        else pa.record_batch({str(k): a[:, k] for k in range(a.shape[1])})
    )


class _Subclass(np.ndarray):
    """An array of another class, as units and images have."""


def _backwards(a: Array) -> Array:
    return np.ascontiguousarray(a[::-1])[::-1]


def _arrow(a: Array) -> Any:
    import pyarrow as pa

    return pa.array(a) if a.ndim == 1 else pa.table({str(k): a[:, k] for k in range(a.shape[1])})


# Containers of the same values: the answer is that of the plain array, or a refusal.
CONTAINERS: dict[str, Callable[[Array], Any]] = {
    "as_list": lambda a: a.tolist(),
    "as_tuple": lambda a: tuple(a.tolist()),
    "swapped": _swapped,
    "read_only": _read_only,
    "apart": _apart,
    "fortran": np.asfortranarray,
    "objects": _objects,
    "masked": np.ma.masked_array,
    "view": lambda a: memoryview(a.data),
    "tensor": _tensor,
    "pandas": _pandas,
    "polars": _polars,
    "arrow": _arrow,
    "nullable": _nullable,
    "chunked": _chunked,
    "subclass": lambda a: a.view(_Subclass),
    "backwards": _backwards,
    "extended": lambda a: a.astype(np.longdouble) if a.dtype.kind == "f" else a.astype(np.int16),
    "deque": deque,
    "numbers_in_list": list,
}

SCORES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "uniform": lambda rng, n: rng.random(n),
    "ties": lambda rng, n: np.round(rng.random(n), 1),
    "sharp": lambda rng, n: rng.beta(0.1, 0.1, n),
    "constant": lambda rng, n: np.full(n, 0.3),
    "zeros and ones": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "tiny": lambda rng, n: rng.random(n) * 1e-200,
    "single": lambda rng, n: rng.random(n).astype(np.float32).astype(float),
}


def dataset(seed: int) -> dict[str, Any]:
    """Arrays by name: y, p (two classes), Y, P, Z (several), w (weights), g (clusters), site; and what is made of them."""
    import pandas as pd
    import polars as pl

    import truecal as tc

    rng = np.random.default_rng(seed)
    n, k = int(rng.choice(SIZES)), int(rng.choice((2, 3, 5)))
    kind = list(SCORES)[rng.integers(len(SCORES))] if rng.random() < 0.5 else "uniform"
    p = SCORES[kind](rng, n)
    y = (rng.random(n) < p).astype(np.int64)
    Z = rng.normal(size=(n, k)) * 2
    P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    Y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    w = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else rng.random(n) + 0.1
    g, site = (
        rng.integers(0, max(1, n // 3), n),
        np.array(["a", STEERING if rng.random() < 0.3 else "b"])[rng.integers(0, 2, n)],
    )
    Q = 0.7 * P + 0.3 * rng.dirichlet(np.ones(k), n)
    more: dict[str, Any] = {} if rng.random() < 0.5 else {"weights": w}
    more |= {} if rng.random() < 0.6 else {"clusters": g}
    columns = {"site": site, "age": rng.integers(20, 90, n)}
    binary = tc.Predictions.from_probs(p, y, columns=columns, **more)
    many = tc.Predictions.from_probs(P, Y, columns=columns, **more)
    rival = tc.Predictions.from_probs(p**2, y, columns=columns, **more)
    others = tc.Predictions.from_probs(Q, Y, columns=columns, **more)
    table = {"y": y, "p": p, "w": w, "g": g, "site": site, **{f"p_{i}": P[:, i] for i in range(k)}, "Y": Y}
    held = {
        "y": y, "p": p, "Y": Y, "P": P, "Z": Z, "w": w, "g": g, "site": site, "n": n, "k": k,
        "binary": binary, "many": many, "rival": rival, "others": others, "Q": Q, "watched": _watched(),
        "results": _store().frame(), "store": _store(), "profile": tc.profile.Profile.from_arrays(p, y),
        "sketch": tc.Sketch().update(p, y), "frame": pd.DataFrame(table), "rows": pl.DataFrame(table),
    }  # fmt: skip
    known = {"np": np, "tc": tc, "pd": pd, "pl": pl, "Path": Path}
    return held | known | {"nan": float("nan"), "inf": float("inf")} | CONTAINERS


@cache
def _store() -> Any:
    """The results of a small study."""
    import truecal as tc
    from tools.hostile.kills import make_study

    folder = TemporaryDirectory()
    _FOLDERS.append(folder)
    study = make_study(Path(folder.name), 4)
    return tc.study.Study.read(study).run(Path(folder.name, "store"), workers=1)


_FOLDERS: list[TemporaryDirectory[str]] = []  # deleted when the process ends


@cache
def _watched() -> Any:
    import truecal as tc

    rng, watch = np.random.default_rng(0), tc.Watch(tolerance=0.02, by="site")
    for day in range(3):
        p = rng.random(80)
        batch = tc.Predictions.from_probs(p, rng.random(80) < p, columns={"site": np.repeat(["a", "b"], 40)})
        watch.update(batch, at=day)
    return watch


LENSES = ("None", "tc.TopLabel()", "tc.OneClass(0)", "tc.ClassWise()", "tc.AllLabels()", "tc.TopK(2)", "tc.Canonical()",
          "tc.Grouping({'a': [0], 'b': [1]})")  # fmt: skip
ESTIMATORS = ("None", "tc.RankSeries()", "tc.RankSeries(norm=1)", "tc.BinnedECE()", "tc.BinnedECE(bins=3, norm=2)",
              "tc.BinnedECE(norm=np.inf)", "tc.DebiasedECE()", "tc.SweepECE()", "tc.NearestECE()",
              "tc.estimators.KernelDensityECE()", "tc.SmoothECE()", "tc.estimators.IsotonicError()",
              "tc.estimators.LabelBinnedECE()", "tc.GeneralizedECE(replicates=20)",
              "tc.estimators.AdaptiveECE()", "tc.estimators.KSError()")  # fmt: skip
# What takes a second wherever it is asked for comes up this much less often than the others.
SELDOM = {"tc.SmoothECE()": 0.1}
RECALIBRATORS = ("tc.recalibration.PlattScaling()", "tc.recalibration.TemperatureScaling(input='probs')",
                 "tc.recalibration.IsotonicCalibration()", "tc.recalibration.HistogramBinning(3)",
                 "tc.recalibration.VennAbers()", "tc.recalibration.BetaCalibration()")  # fmt: skip
_LABELS, _PROBS = ("y",), ("p",)
# Values by the name of the parameter. A name with several meanings has the values of all of them.
GOOD: dict[str, tuple[str, ...]] = {
    "y_true": ("y",), "labels": ("y",), "outcomes": ("y",), "y_prob": ("p",), "scores": ("p",), "prob_a": ("p",),
    "prob_b": ("p**2", "p"), "probs": ("p",), "logits": ("Z",), "X": ("P",), "y": ("Y",), "x": ("p",),
    "outputs": ("None", "p[:1]"), "sample_weight": ("None", "w"), "weights": ("None", "w"), "clusters": ("None", "g"),
    "classes": ("None",), "columns": ("None", "{'site': site}"),
    "preds": ("binary", "many"), "a": ("many",), "b": ("many",), "data": ("profile", "binary"), "profile": ("profile",),
    "methods": ("{'a': many, 'b': many}",), "models": ("{'a': binary, 'b': binary}",), "frame": ("frame", "rows"),
    "source": ("frame", "rows"), "label": ("'y'",), "score": ("'p'",), "lens": LENSES, "estimator": ESTIMATORS,
    "estimators": ("None", "{'b': tc.BinnedECE()}"), "recalibrator": RECALIBRATORS,
    "scaling": ("None", "tc.recalibration.PlattScaling()"),
    "recalibrators": ("{'platt': tc.recalibration.PlattScaling()}", "[tc.recalibration.VennAbers()]"),
    "select": ("None", "tc.by_label(0)", "tc.by_output(low=0.2)", "tc.by_column('site', 'a')"),
    "distance": ("None", "tc.estimators.TotalVariation()", "tc.estimators.Lp(2)"),
    "binning": ("None", "tc.estimators.KDTree(0.2)", "tc.estimators.EqualMass(3)"),
    "level": ("0.95", "0.5"), "rng": ("0", "np.random.default_rng(1)"), "seed": ("0",), "bins": ("3", "15"), "norm": ("1", "2"),
    "resamples": ("20",), "replicates": ("20",), "m": ("3",), "n": ("20",), "threshold": ("0.02", "0.5"), "tolerance": ("0.02",),
    "alpha": ("0.05", "2.0"), "by": ("None", "'site'", "['site', 'age']"), "cuts": ("None", "[40, 60]"), "depth": ("1", "2"),
    "smallest": ("1", "30"), "min_rows": ("None", "5"), "key": ("None",), "reference": ("None",), "baseline": ("None",),
    "given": ("0",), "name": ("'site'", "0"), "groups": ("{'a': [0], 'b': [1]}",), "k": ("1", "2"), "fraction": ("0.1",),
    "low": ("0.1",), "high": ("0.9",), "p": ("2", "np.array([0.1, 0.02])"), "fit_share": ("0.6",), "folds": ("2", "None"),
    "prevalence": ("None", "0.2"), "time": ("p + 1",), "event": ("y",), "horizon": ("1.5",), "how": ("'drop'", "'weight'"),
    "risks": ("p",), "tool": ("'torchmetrics'", "'netcal'"), "rate": ("0.1",), "cost_ratio": ("0.3",), "path": ("'out.html'",),
    "thresholds": ("None", "[0.1, 0.5]"), "widths": ("{'oe': 0.2}", "{'oe': 2.0}"), "of": ("None", "0"),
    "at": ("None", "[0.2, 0.5]"),
    "values": ("[0.2, 0.5]",), "world": ("tc.lab.World(tc.lab.Beta(2.0, 1.0), tc.lab.Power(0.1))",), "targets": ("Y",),
    "ks": ("(1, 2)",), "batch": ("binary",), "other": ("sketch",), "slope": ("1.0",), "intercept": ("0.0",), "row": ("[0]",),
    "datasets": ("[0]",), "event_": ("0",), "worlds": ("{'a': tc.lab.World(tc.lab.Uniform())}",), "error": ("0.02",),
    "cohorts": ("2",), "shares": ("(0.5, 1.0)",), "fractions": ("(0.5, 0.25)",), "matrix": ("np.eye(2)",), "cells": ("3",),
    "output": ("P",), "outcome": ("np.eye(k)[Y]",), "c": ("p",), "b0": ("0.1",), "b1": ("0.8",),
    "beta": ("0.5", "2.0"), "d": ("0.2",),
    "edges": ("(0.3, 0.6)",), "strength": ("0.5",), "smoothing": ("0.1",), "gamma": ("2.0",), "inputs": ("tensor(Z)",),
    "coverage": ("[0.5]", "1"), "rates": ("p",), "false_positive": ("1.0",), "false_negative": ("2.0",), "per": ("100",),
    "index": ("0", "1"), "remaining_error": ("0.02",), "rows": ("[0]", "p > 0.5"),
    "c_statistic": ("None", "0.8"), "covariates": ("None", "np.column_stack([p, w])"), "rule": ("'torchmetrics'", "'width'"),
}  # fmt: skip

_RESULTS = {"frame": "results", "source": "results", "metric": "'ece-width-15-l1'", "metrics": "['ece-width-15-l1', 'error']",
            "lens": "'top-label'", "recalibrator": "'none'", "selection": "'all'", "reference": "", "datasets": "", "dataset": "",
            "covariate": "'size'", "by": "'model'", "key": "", "groups": ""}  # fmt: skip
_FRAME = {
    "frame": "frame",
    "source": "rows",
    "label": "'y'",
    "weights": "'w'",
    "clusters": "",
    "classes": "",
    "logits": "",
    "by": "",
}
_TENSORS = {"logits": "tensor(Z)", "targets": "tensor(Y)", "weight": ""}
_SCORES = {"scores": "tc.lab.Beta(2.0, 1.0)", "curve": "tc.lab.Power(0.2)", "recalibration": ""}
# What goes together, by the path of the function; "" is left out. One of them is drawn for a call.
TOGETHER: dict[str, tuple[dict[str, str], ...]] = {
    "compare": (
        {"y_true": "y", "prob_a": "p", "prob_b": "p**2"},
        {"y_true": "Y", "prob_a": "P", "prob_b": "Q"},
        {"y_true": "binary", "prob_a": "rival", "prob_b": "", "sample_weight": "", "clusters": "", "classes": ""},
        {"y_true": "many", "prob_a": "others", "prob_b": "", "sample_weight": "", "clusters": "", "classes": ""},
        {"y_true": "many", "prob_a": "others", "prob_b": "", "paired": "False", "sample_weight": "", "clusters": "", "classes": ""},
    ),
    "compare_many": (
        {"y_true": "y", "probs": "{'a': p, 'b': p**2, 'c': p}"},
        {"y_true": "Y", "probs": "{'a': P, 'b': Q}"},
        {"y_true": "{'a': binary, 'b': rival}", "probs": "", "sample_weight": "", "clusters": "", "classes": ""},
        {"y_true": "{'a': many, 'b': others}", "probs": "", "sample_weight": "", "clusters": "", "classes": ""},
    ),
    "evaluate": ({"logits": "", "preds": "many"}, {"logits": "", "preds": "binary"}),
    "net_benefit": ({"preds": "binary"}, {"preds": "{'a': binary, 'b': rival}"}),
    "clinical": ({"preds": "binary", "by": ""}, {"preds": "binary", "by": "'site'"}),
    "subgroups": ({"by": "'site'"}, {"by": "['site', 'age']", "cuts": "[40, 60]"}),
    "audit": ({"by": "['site', 'age']", "min_rows": "5"},),
    "choose_bins": ({"preds": "tc.Predictions.from_probs(p, y)", "bins": "(2, 5)", "scaling": "", "level": "0.9"},),
    "sample_size": ({"risks": "p", "prevalence": "", "c_statistic": ""}, {"risks": "", "prevalence": "0.2", "c_statistic": "0.8"}),
    "missing_outcomes": ({"how": "'drop'"}, {"how": "'inverse-probability'", "covariates": "np.column_stack([p, w])"}),
    "rows_needed": ({"smallest": "0.05"}, {"smallest": ""}),
    "scan": ({**_FRAME, "score": "'p'", "probs": ""}, {**_FRAME, "label": "'Y'", "score": "", "probs": "'p_*'"}),
    "Predictions.from_frame": ({**_FRAME, "probs": "'p'"}, {**_FRAME, "label": "'Y'", "probs": "'p_*'", "clusters": "'g'"}),
    "report": ({"source": "", "fast": "True"},),
    "report_study": ({"store": "store"},),
    "report_watch": ({"watch": "watched"},),
    "by_column": ({"name": "'site'", "values": "'a'", "low": "", "high": ""}, {"name": "'age'", "values": "", "low": "30"}),
    "by_label": ({"classes": "0"}, {"classes": "'a'"}),
    "Watch": ({"alpha": "0.05", "by": ""}, {"by": "'site'", "alpha": "0.05"}),
    "SegmentOffsets": ({"by": "['site']"},),
    "ClassWeighted": ({"weights": "(1.0,) * k"},),
    "Grouping": ({"preds": "many"},),
    "Lp": ({"p": "2"}, {"p": "1.5"}),
    "ForeignECE": ({"rule": "'array_split'"}, {"rule": "'floor(c * bins)'"}),
    "lab.GLM": ({"link": "'logit'", "transform": "'logit'", "b0": "0.1", "b1": "0.8"},),
    "lab.BatchCache": ({"folder": "'cache'"},),
    "lab.DirichletWorld": ({"alpha": "(1.0, 2.0, 1.0)", "overconfidence": "0.5"},),
    "lab.Mixture": ({"parts": "(tc.lab.Uniform(), tc.lab.Beta(2.0, 1.0))", "shares": "(0.5, 0.5)"},),
    "lab.World": (_SCORES,),
    "lab.TopLabelWorld": ({"top": "tc.lab.World(tc.lab.Uniform())", "classes": "3"},),
    "lab.Steps": ({"edges": "(0.3, 0.6)", "values": "(0.1, 0.5, 0.9)"},),
    "lab.dataset_of": ({"world_name": "'a'"},),
    "sample_size_by_simulation": ({"risks": "p", "widths": "{'oe': 1.5}", "prevalence": "", "c_statistic": "", "cohorts": "2"},),
    "calibration_belt": ({"preds": "binary"},),
    "flexible_curve": ({"preds": "binary"},),
    "lab.coverage": ({"estimator": "tc.RankSeries()"}, {"estimator": "tc.DebiasedECE()"}),
    "lab.power_of_test": ({"alpha": "0.05", "estimator": "tc.BinnedECE()"},),
    "lab.goodness": ({"fit": "tc.lab.fit_world(profile)", "world": ""},),
    "study.Store": ({"folder": "store.folder"},),
    "study.predictions_of": ({"store": "store", "model": "'m0'", "dataset": "'d'"},),
    "train": (_TENSORS,),
    "uncertainty.measure_profile": ({"rng": "np.random.default_rng(0)"},),
    "study": (_RESULTS,),
}  # fmt: skip
TOGETHER |= {
    f"plot.{name}": (arguments,)
    for name, arguments in {
        "AbstentionDisplay.from_curves": {"curves": "{'a': tc.selective.risk_coverage(binary)}"},
        "AuditDisplay.from_audit": {"audit": "tc.audit(binary, by=['site'], min_rows=5)"},
        "BeforeAfterDisplay.from_predictions": {"y_true": "y", "y_probs": "{'a': p, 'b': p**2}"},
        "ContextDisplay.from_estimates": {"estimates": "{'a': tc.measure(binary)}"},
        "ContextDisplay.from_grouping": {"preds": "many", "grouping": "tc.Grouping({'a': [0], 'b': range(1, k)})"},
        "DecisionDisplay.from_curve": {"curve": "tc.clinical.net_benefit(binary)"},
        "FlexibleDisplay.from_curves": {"curves": "{'a': tc.clinical.flexible_curve(binary)}", "scores": ""},
        "GranularityDisplay.from_sweep": {"sweep": "tc.estimators.sweep_granularity(many, replicates=3)"},
        "LikertDisplay.from_report": {"report": "tc.likert(binary)"},
        "OverTimeDisplay.from_watch": {"watch": "watched"},
        "TopKDisplay.from_report": {"report": "tc.groups.beyond_top({'a': many}, ks=(1, 2))"},
        "ParetoDisplay.from_result": {"result": "tc.study.pareto(results, metrics=['ece-width-15-l1', 'error'])"},
    }.items()
}
TOGETHER |= {f"uncertainty.{name}": TOGETHER[name] for name in ("compare", "compare_many")}

ODD = ("None", "True", "-1", "0", "1", "0.5", "2.5", "1e308", "nan", "inf", "-inf", "'x'", "''", "b'x'", "[]", "{}", "()", "set()",
       "[1, 2]", "[[1], [2, 3]]", "(1, 2)", "object()", "np.array(3)", "np.array([])", "np.zeros((2, 2, 2))",
       "np.datetime64('2020-01-01')", "np.float32(0.5)", "np.int8(3)", "'\\x1b[31m'", "{'a': 1}",
       "range(3)", "'a' * 1000", "tc", "tc.TopLabel", "tc.TopLabel()", "tc.BinnedECE()", "binary", "profile", "frame", "p", "y",
       "P", "Y", "w", "site", "-p", "p + 1", "p[:-1]", "y[:0]", "p.astype(np.float16)", "p.astype(str)", "p > 0.5",
       "np.where(p < 2, nan, p)",
       "np.bool_(True)", "np.str_('x')", "np.uint64(2**64 - 1)", "-0.0", "1e16",
       "2**31", "np.ma.masked", "np.ma.masked_array([0.5, 0.2], [0, 1])", "pd.NA", "pd.NaT",
       "pl.col('a')", "pl.Series([None, 0.5])", "pd.Series([None, 0.5], dtype='Float64')",
       "np.array(['a', None], object)",
       "'=1+1'", "' '", "'../x'", "{1: 2, 'a': None}", "{'x': p}", "{'x': binary}", "[binary]", "[None, 1]", "[True, False]",
       "P.T", "P[:, :1]",
       "p[::2]", "rows", "sketch", "many", "p.reshape(1, -1)", "[p, p[:-1]]", "np.eye(3)",
       "np.float64(nan)", "[[]]", "[nan]", "[inf]", "(0.5,)", "[0.5, 0.5]", "[1, 0]", "['site', 'site']")  # fmt: skip

_ROWS_BAD = (
    "[0.5] * (n + 1)",
    "'x'",
    "{'a': 1}",
    "set()",
    "object()",
    "1j * p",
    "p.astype(str)",
    "np.zeros((n, 2, 2))",
    "np.ma.masked_array(p, np.arange(n) == 0)",
    "pd.Series([None, *p[1:]], dtype='Float64')",
    "pl.Series([None, *p[1:]], dtype=pl.Float64)",
    "[None, *p[1:]]",
    "p.astype('m8[s]')",
    "(v for v in p)",
)
_NUMBERS_BAD = ("None", "'x'", "nan", "[]", "object()", "-1")
# Values that must be refused, by the name of the parameter, in functions that judge predictions.
BAD: dict[str, tuple[str, ...]] = {
    "y_prob": ("p + 2", "p - 1.5", "p * nan", "p * inf", "P * 3", "None", *_ROWS_BAD),
    "scores": ("p + 2", "p - 1.5", "p * nan", "None", *_ROWS_BAD),
    "prob_a": ("p + 2", "p * nan", *_ROWS_BAD),
    "y_true": ("y + 7", "y - 9", "y * nan", "y + 0.5", "'x'", "set()", "np.append(y, 1)", "y[:-1]", "site",
               "[None, *y[1:]]", "np.ma.masked_array(y, np.arange(n) == 0)", "pd.Series([None, *y[1:]], dtype='Int64')",
               "y.astype('m8[s]')", "1j * y", "pl.Series([None, *y[1:]], dtype=pl.Int64)"),
    "outcomes": ("y + 7", "y * nan", "y + 0.5", "np.append(y, 1)", "y[:-1]", "site"),
    "sample_weight": ("-w", "w * nan", "w * 0", "w[:-1]", "w * inf", "'x'", "w * 1e300", "w * 1e-300", "w.astype(str)",
                      "[None, *w[1:]]", "np.ma.masked_array(w, np.arange(n) == 0)", "pd.Series([None, *w[1:]], dtype='Float64')",
                      "1j * w", "w.astype('m8[s]')"),
    "weights": ("-w", "w * nan", "w * 0", "w[:-1]", "w * inf", "'x'", "w * 1e300", "w.astype(str)"),
    "clusters": ("g[:-1]", "np.append(g, 1)", "3", "[None] * n", "g * nan", "{1: 2}",
                 "np.ma.masked_array(g, np.arange(n) == 0)", "pd.Series([None, *g[1:]], dtype='Int64')"),
    "level": (*_NUMBERS_BAD, "0", "1", "2"),
    "rng": ("-1", "'x'", "0.5", "nan"),
    "lens": ("'top'", "tc.TopLabel", "0", "[]", "tc.BinnedECE()"),
    "estimator": ("'ece'", "tc.BinnedECE", "0", "[]", "tc.TopLabel()"),
    "preds": ("None", "p", "P", "profile.scores", "'x'", "0", "(y, p)", "object()", "frame"),
    "profile": ("None", "p", "binary", "'x'", "(p, y)"),
    "select": ("'x'", "tc.by_label", "0", "p > 0.5", "tc.TopLabel()"),
    "resamples": ("0", "-1", "2.5", "'x'", "nan"),
    "bins": ("0", "-1", "2.5", "nan", "10**9", "'x'"),
}  # fmt: skip
# Of those, the parameters that mean the same wherever they are.
EVERYWHERE = ("level", "rng", "bins")
