"""What Minderer et al. say of large image networks, asked of the example study: 18 small classifiers of seven families on four sets
of data, before and after temperature scaling, at six severities of shift.

`truecal study example FOLDER` trains the same models, and `truecal study figure NAME FOLDER/store` draws each figure. Calibration
is the rank series of the top label, root mean square. A claim is answered once per set of data, and the four answers give its
standard error: models on one set are not independent.
"""

import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

import truecal as tc
from papers.drawing import Figure, panel
from papers.experiment import Experiment, Setting, tidy
from papers.grading import SE_FACTOR, Number, Quantities
from papers.page import Row
from truecal.lab import Frame

_METRICS = ("rank-series-l2", "ece-mass-100-l1", "ece-width-15-l1", "debiased-15-l2")
MODELS = 18  # of the whole example study
_COLUMNS = ("claim", "data", "value", "cases")
_RATES = tuple(k / 10 for k in range(8))  # shares of cases not answered, to the largest practical one of Figure 7
Answers = dict[str, dict[str, list[float]]]  # claim -> set of data -> value of every case


@cache
def _scratch() -> str:
    return tempfile.mkdtemp(prefix="papers-")


def _data_of(dataset: str) -> str:
    """The set of data behind a dataset of the study: the three shifts of digits share their images."""
    return dataset.split("-")[0]


def example(setting: Setting) -> Experiment:
    """Train and evaluate the example study, with m below MODELS its quick part (five models, two sets), and answer the claims."""
    quick = setting.m < MODELS
    folder = Path(setting.run.cache or _scratch()) / ("example-quick" if quick else "example")
    study = tc.study.Study.read(tc.study.make_example(folder, quick=quick, workers=setting.run.workers))
    store = study.run(folder / "store", workers=setting.run.workers)
    answers: Answers = {}

    def add(claim: str, rows: Iterable[Row], value: Callable[[Row], float | bool | None]) -> None:
        for row in rows:
            if (answer := value(row)) is not None and np.isfinite(answer):
                answers.setdefault(claim, {}).setdefault(_data_of(row["dataset"]), []).append(float(answer))

    _recalibration(store, add)
    _severities(store, add)
    _correlations(store, add)
    _bins(store, add)
    _metrics(store, add)
    _costs(folder, store, add)
    rows = [
        (claim, data, float(np.mean(values)), len(values))
        for claim, by in answers.items()
        for data, values in by.items()
    ]
    table = tidy(_COLUMNS, rows)

    def draw(figure: Figure) -> None:
        axes = panel(figure, wide=True)
        numbers = read_example(table)
        claims = list(dict.fromkeys(table["claim"]))
        figure.set_size_inches(figure.get_figwidth(), 0.2 * len(claims) + 1.2)
        height = {claim: len(claims) - k for k, claim in enumerate(claims)}
        for data in dict.fromkeys(table["data"]):
            part = [row for row in table if row["data"] == data]
            axes.plot([r["value"] for r in part], [height[r["claim"]] for r in part], ".", markersize=4, label=data)
        means = [numbers[claim] for claim in claims]
        errors = [2 * number.se for number in means if isinstance(number, Number)]
        values = [number.value for number in means if isinstance(number, Number)]
        axes.errorbar(values, list(height.values()), xerr=errors, fmt="|", color="black", label="mean and 95 % limits")
        axes.axvline(0, color="grey", linewidth=0.8)
        axes.axvline(0.5, color="grey", linestyle="--", linewidth=0.8)
        axes.set_yticks(list(height.values()), [claim.replace("_", " ") for claim in claims])
        axes.set(xlabel="share, difference or Kendall's tau")
        figure.legend(loc="outside lower center", ncols=5)

    return Experiment("minderer-example", "claims about large networks, asked of small classifiers", table, draw)


Add = Callable[[str, Iterable[Row], Callable[[Row], float | bool | None]], None]


def _rows(frame: Any) -> list[Row]:
    return list(frame.iter_rows(named=True))


def _recalibration(store: tc.study.Store, add: Add) -> None:
    """Figure 2: on clean data, what temperature scaling lowers, and whether larger models of a family are worse after it."""
    models = [row for row in _rows(tc.study.effect_of_recalibration(store).frame()) if row["severity"] == 0]
    once = [row for row in models if row["dataset"] in ("digits-noise", _data_of(row["dataset"]))]
    add("lowered_by_temperature", once, lambda row: row["change"] < 0)
    add("change_by_temperature", once, lambda row: row["change"])
    for severity, claim in ((0, "larger_worse_clean"), (None, "larger_worse_shifted")):
        rows = _rows(tc.study.effect_of_recalibration(store).frame())
        last = max(row["severity"] for row in rows)
        part = [row for row in rows if row["severity"] == (last if severity is None else 0)]
        add(claim, _pairs_within_families(part), lambda pair: pair["after"] > 0)


def _pairs_within_families(rows: list[Row]) -> list[Row]:
    """Every pair of models of one family and dataset: numbers of the larger one less those of the smaller one."""
    pairs = []
    for small, large in permutations(rows, 2):
        same = (small["dataset"], small["family"]) == (large["dataset"], large["family"])
        if same and small["size"] < large["size"]:
            pairs.append({"dataset": small["dataset"], "after": large["after"] - small["after"]})
    return pairs


def _severities(store: tc.study.Store, add: Add) -> None:
    """Figures 4 and 5: slopes over severities, and how much less the numbers of the largest model of a family rise."""
    for recalibrator in ("none", "temperature"):
        slopes = _rows(tc.study.shift(store, recalibrator=recalibrator).frame("slopes"))
        add(f"error_rises_{recalibrator}", slopes, lambda row: row["error_slope"] > 0)
        add(f"calibration_worsens_{recalibrator}", slopes, lambda row: row["slope"] > 0)
    models = _rows(tc.study.shift(store, recalibrator="temperature").frame())
    first, last = 0, max(row["severity"] for row in models)
    clean = {(row["dataset"], row["model"]): row for row in models if row["severity"] == first}
    ends = [(clean[row["dataset"], row["model"]], row) for row in models if row["severity"] == last]
    smaller = [(a, b) for a, b in ends if b["relative_size"] is not None and b["relative_size"] < 1]
    for name in ("value", "error"):
        gaps = [
            {"dataset": b["dataset"], "gap": b[f"{name}_beside_largest"] - a[f"{name}_beside_largest"]}
            for a, b in smaller
        ]
        add("calibration_rises_slower" if name == "value" else "error_rises_slower", gaps, lambda row: row["gap"])
    changes = [
        {"dataset": b["dataset"], "less": abs(b["value"] - a["value"]) < abs(b["error"] - a["error"])} for a, b in ends
    ]
    add("calibration_changes_less", changes, lambda row: row["less"])


def _correlations(store: tc.study.Store, add: Add) -> None:
    """Figures 6 and 11: over models, clean with shifted calibration, and error with calibration of shifted data."""
    rows = _rows(tc.study.in_and_out(store, recalibrator="temperature").frame("correlations"))
    for pair, claim in (
        ("metric in, metric out", "tau_clean_shifted"),
        ("error out, metric out", "tau_error_calibration"),
    ):
        add(claim, [row for row in rows if row["pair"] == pair], lambda row: row["tau"])
    results = store.frame()
    for data in sorted({row["dataset"] for row in rows}):
        lines = _rows(
            tc.study.log_fits(results.filter(results["dataset"] == data), recalibrator="temperature").frame("lines")
        )
        slopes = [{"dataset": data, "slope": row["slope"]} for row in lines if row["family"] is not None]
        add("family_slope_positive", slopes, lambda row: row["slope"] > 0)


def _bins(store: tc.study.Store, add: Add) -> None:
    """Figure 9: the slope of ECE over error with the fewest and the most bins of equal mass."""
    slopes = _rows(tc.study.bin_trend(store, recalibrator="temperature").frame("slopes"))
    by_dataset: dict[str, list[Row]] = {}
    for row in slopes:
        if (row["severity"], row["scheme"], row["norm"]) == (0, "mass", 1) and row["bins"] and not row["debiased"]:
            by_dataset.setdefault(row["dataset"], []).append(row)
    ends = [
        {"dataset": data, "product": part[0]["slope"] * part[-1]["slope"]}
        for data, rows in by_dataset.items()
        if len(part := sorted(rows, key=lambda row: int(row["bins"]))) > 1
    ]
    add("trend_reversed", ends, lambda row: row["product"] < 0)


def _metrics(store: tc.study.Store, add: Add) -> None:
    """Figure 8 and appendix E: how much of log loss and Brier score error explains; how far estimators and their fronts agree."""
    lines = [row for row in _rows(tc.study.residuals(store).frame("lines")) if row["severity"] == 0]
    for metric in ("nll", "brier"):
        add(f"explained_{metric}", [row for row in lines if row["metric"] == metric], lambda row: row["explained"])
    agreement = _rows(tc.study.rank_agreement(store, metrics=_METRICS).frame())
    add("tau_between_estimators", [row for row in agreement if row["severity"] == 0], lambda row: row["tau"])
    fronts = [r for r in _rows(tc.study.pareto(store, metrics=_METRICS).frame("fronts")) if r["severity"] == 0]
    overlaps = []
    for dataset in sorted({row["dataset"] for row in fronts}):
        sets = [
            {r["model"] for r in fronts if r["dataset"] == dataset and r["metric"] == m and r["front"]}
            for m in _METRICS
        ]
        overlaps += [{"dataset": dataset, "shared": len(a & b) / len(a | b)} for a, b in combinations(sets, 2)]
    add("front_shared", overlaps, lambda row: row["shared"])


def _costs(folder: Path, store: tc.study.Store, add: Add) -> None:
    """Appendix B.3: pairs of one family, one more accurate and the other better calibrated; is the former cheaper?

    Abstentions cost the same for both, so that the cheaper one has fewer errors among the cases that it answers.
    """
    families = dict(store.frame().select("model", "family").unique().iter_rows())
    for dataset in sorted(path.name for path in (folder / "predictions").iterdir()):
        models: dict[str, tuple[float, float, list[float]]] = {}
        for model in families:
            with np.load(folder / "predictions" / dataset / model / "severity-0-seed-0.npz") as file:
                preds = tc.Predictions.from_logits(file["logits"], file["labels"])
            curve = tc.selective.risk_coverage(preds, resamples=2)
            errors = [float(curve.at([1 - rate])[0]) * (1 - rate) for rate in _RATES]
            models[model] = (errors[0], float(tc.RankSeries().values(tc.TopLabel()(preds))[0]), errors)
        pairs = [
            {"dataset": dataset, "cheaper": all(x <= y for x, y in zip(models[a][2], models[b][2], strict=True))}
            for a, b in permutations(models, 2)
            if families[a] == families[b] and models[a][0] < models[b][0] and models[a][1] > models[b][1]
        ]
        add("accurate_cheaper", pairs, lambda row: row["cheaper"])


def read_example(table: Frame) -> Quantities:
    """Mean over the sets of data for every claim; two standard errors reach to the 95 % limits of Student's t, for sets are few."""
    quantities = {}
    for claim in dict.fromkeys(table["claim"]):
        values = np.array([row["value"] for row in table if row["claim"] == claim])
        se = np.inf
        if len(values) > 1:
            se = float(values.std(ddof=1)) / len(values) ** 0.5 * float(stdtrit(len(values) - 1, 0.975)) / SE_FACTOR
        quantities[claim] = Number(float(values.mean()), se)
    return quantities
