"""Interventions after training under every lens (Kirchenbauer, Oaks & Heim 2022, section 5), on a network's logits.

Temperature scaling, bias-corrected temperature scaling and histogram binning learn from validation rows; test rows are judged.
What needs training (label smoothing, mixup, focal loss) is in `truecal study interventions`, which also takes ready logits. Beside
each error stands that of a calibrated model with the same outputs, whose labels are drawn from them.

And how fine bins may be (appendix B): the full error, its spread, and the number of rows in a bin.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

import truecal as tc
from papers.drawing import Figure, lines, panels
from papers.experiment import Experiment, Field, Network, Setting, the_network, tidy
from truecal.lab import Frame

BASE = "none"
_COLUMNS = ("intervention", "lens", "selection", "metric", "value", "if_calibrated", "n")
_JUDGE = tc.GeneralizedECE(level=None)  # total variation in a k-d tree of 0.1, the paper's choice
_USUAL = tc.GeneralizedECE(lens=tc.TopLabel(), binning=tc.estimators.EqualWidth(15), level=None)
_HISTOGRAM_BINS = 15
SCALES = {
    "likert": {"low": (0.0, 0.33), "medium": (0.33, 0.66), "high": (0.66, 1.0)},
    "very high": {"not very high": (0.0, 0.8), "very high": (0.9, 1.0)},
}
Judged = Callable[[tc.Predictions], Iterator[tuple[str, str, str, float, int]]]


def interventions(network: Network, experiment: str) -> dict[str, tc.Predictions]:
    """The test split of a network as it is, and after each intervention fitted to its validation split."""
    held, test = network.held_out(experiment), network.test
    learn, apply = held.logits_or_logs(), test.logits_or_logs()
    made = {
        "temperature": tc.recalibration.TemperatureScaling(input="logits"),
        "bias-corrected temperature": tc.recalibration.BiasCorrectedTemperature(input="logits"),
        "histogram, equal mass": tc.recalibration.HistogramBinning(_HISTOGRAM_BINS, input="logits"),
        "histogram, equal width": tc.recalibration.HistogramBinning(_HISTOGRAM_BINS, scheme="width", input="logits"),
    }
    outputs = {BASE: test.preds}
    for name, recalibrator in made.items():
        probs = recalibrator.fit(learn, held.preds.labels).predict_proba(apply)
        outputs[name] = replace(test.preds, probs=probs)
    return outputs


def groups_of(preds: tc.Predictions) -> dict[str, list[int]]:
    """Animals and vehicles for the ten classes of CIFAR-10 (in its usual order); else the first and the second half."""
    count = preds.class_count
    if count == 10:
        return {"animals": [2, 3, 4, 5, 6, 7], "vehicles": [0, 1, 8, 9]}
    return {"first half": list(range(count // 2)), "second half": list(range(count // 2, count))}


def _table(setting: Setting, experiment: str, judged: Judged) -> Frame:
    """Every number of every intervention, with that of a calibrated twin."""
    rows: list[tuple[Field, ...]] = []
    for name, preds in interventions(the_network(setting.data, experiment), experiment).items():
        chance = np.random.default_rng(setting.rng).random((len(preds), 1))
        labels = (preds.probs.cumsum(axis=1) < chance).sum(axis=1).clip(0, preds.class_count - 1)
        twin = {row[:3]: row[3] for row in judged(replace(preds, labels=labels))}
        for lens, selection, metric, value, n in judged(preds):
            reference = twin.get((lens, selection, metric), np.nan) if metric == "error" else np.nan
            rows.append((name, lens, selection, metric, value, reference, n))
    return tidy(_COLUMNS, rows)


def _top_k(preds: tc.Predictions) -> Iterator[tuple[str, str, str, float, int]]:
    n, ks = len(preds), [k for k in (1, 2, 3, 5, 10, 50, 100) if k < preds.class_count]
    yield "traditional", "all", "error", float(_USUAL(preds)), n
    for k in ks:
        yield f"top-{k}", "all", "error", float(replace(_JUDGE, lens=tc.TopK(k))(preds)), n
    yield "full", "all", "error", float(replace(_JUDGE, lens=tc.Canonical())(preds)), n
    top = tc.TopK(min(10, preds.class_count)).sample(preds)
    for k in ks:
        yield f"top-{k}", "all", "accuracy", float((top.labels < k).mean()) if k <= 10 else np.nan, n
    for rank in range(1, min(5, top.probs.shape[1]) + 1):
        yield f"rank {rank}", "all", "confidence", float(top.probs[:, rank - 1].mean()), n
    positive = np.maximum(preds.probs, np.finfo(np.float64).tiny)
    yield "full", "all", "entropy", float(-(preds.probs * np.log(positive)).sum(axis=1).mean()), n


def _groups(preds: tc.Predictions) -> Iterator[tuple[str, str, str, float, int]]:
    n, groups = len(preds), groups_of(preds)
    grouped = tc.Grouping(groups).predictions(preds)
    yield "traditional", "all", "error", float(_USUAL(preds)), n
    yield "groups", "all", "error", float(_JUDGE(grouped)), n
    yield "full", "all", "error", float(_JUDGE(preds)), n
    for group in groups:
        chosen = tc.by_label(group)(grouped)
        yield "groups", f"label {group}", "error", float(_JUDGE(chosen)), len(chosen)
        for other, mean in zip(groups, chosen.probs.mean(axis=0), strict=True):
            yield f"groups: {other}", f"label {group}", "confidence", float(mean), len(chosen)


def _likert(preds: tc.Predictions) -> Iterator[tuple[str, str, str, float, int]]:
    n = len(preds)
    yield "traditional", "all", "error", float(_USUAL(preds)), n
    yield "full", "all", "error", float(_JUDGE(preds)), n
    for scale, words in SCALES.items():
        for one in tc.likert(preds, words, replicates=20).categories:
            yield f"{scale} {one.name}", "all", "share", one.share, n
            if one.inter_interval is not None and one.within is not None:
                yield f"{scale} {one.name}", "all", "beyond the interval", float(one.inter_interval), one.count
                yield f"{scale} {one.name}", "all", "within the interval", float(one.within), one.count


def _drawn(table: Frame, metrics: tuple[str, ...]) -> Callable[[Figure], None]:
    def draw(figure: Figure) -> None:
        for axes, metric in zip(panels(figure, len(metrics), columns=2, share_y=False), metrics, strict=True):
            rows = [row for row in table if row["metric"] == metric and row["value"] == row["value"]]
            names = list(dict.fromkeys(row["intervention"] for row in rows))
            things = list(dict.fromkeys((row["lens"], row["selection"]) for row in rows))
            for i, name in enumerate(names):
                own = [row for row in rows if row["intervention"] == name]
                place = [things.index((row["lens"], row["selection"])) + (i - len(names) / 2) * 0.15 for row in own]
                axes.bar(place, [row["value"] for row in own], 0.15, label=name)
            words = [lens if chosen == "all" else f"{lens}\n{chosen}" for lens, chosen in things]
            axes.set_xticks(range(len(things)), words, rotation=60, fontsize="x-small")
            axes.set(title=metric)
        axes.legend(fontsize="x-small")

    return draw


def top_k(setting: Setting) -> Experiment:
    """Top-k errors, accuracies, confidences by rank and entropy. The paper: what lowers the usual error leaves the others."""
    table = _table(setting, "kirchenbauer-topk", _top_k)
    title = "Interventions after training: the k most probable classes (G, section 5.1)"
    return Experiment("kirchenbauer-topk", title, table, _drawn(table, ("error", "confidence", "accuracy", "entropy")))


def groups(setting: Setting) -> Experiment:
    """Errors of groups of classes, and among the rows of each group. The paper: some interventions raise them."""
    table = _table(setting, "kirchenbauer-groups", _groups)
    title = "Interventions after training: groups of classes and rows of one group (G, section 5.2)"
    return Experiment("kirchenbauer-groups", title, table, _drawn(table, ("error", "confidence")))


def likert(setting: Setting) -> Experiment:
    """Words for confidence: errors that leave a word's interval, errors inside it, and how many outputs it holds."""
    table = _table(setting, "kirchenbauer-likert", _likert)
    title = "Interventions after training: confidence in words (G, section 5.3)"
    metrics = ("beyond the interval", "within the interval", "share")
    return Experiment("kirchenbauer-likert", title, table, _drawn(table, metrics))


GAMMAS = tuple(2.0**-k for k in range(1, 12))
_ROW_SHARES = (0.1, 0.5, 1.0)  # parts of the test rows in Figure 9
_GRANULARITY_COLUMNS = ("gamma", "rows", "resamples", "error", "sd", "least_in_bin", "median_in_bin", "most_in_bin")


def granularity(setting: Setting) -> Experiment:
    """Resamples of the test rows for every gamma. The paper: the error is stable about gamma = 2^-4."""
    preds = the_network(setting.data, "kirchenbauer-gamma").test.preds
    rows: list[tuple[Field, ...]] = []
    for part in _ROW_SHARES:
        size = round(part * len(preds))

        def drawn(k: int, size: int = size) -> tc.Predictions:
            return preds.take(setting.stream(size, k).integers(0, len(preds), size))

        for gamma in GAMMAS:
            judge = tc.GeneralizedECE(binning=tc.estimators.KDTree(gamma), level=None)
            words = f"full error, gamma {gamma:g}, {size} rows"
            values = setting.repeated(words, lambda k, judge=judge, drawn=drawn: [float(judge(drawn(k)))])  # type: ignore[misc]
            counts = np.asarray(getattr(judge(drawn(0)).vector_bins, "count"))  # noqa: B009 (the protocol names only what pages need)
            filled = counts[counts > 0]
            spread = float(values.std(ddof=1)) if setting.m > 1 else 0.0
            held = (float(filled.min()), float(np.median(filled)), float(filled.max()))
            rows.append((gamma, size, setting.m, float(values.mean()), spread, *held))
    table = tidy(_GRANULARITY_COLUMNS, rows)
    title = "Full calibration error against the fraction of a bin (G, appendix B)"
    return Experiment("kirchenbauer-gamma", title, table, lambda figure: _draw_granularity(figure, table))


def _draw_granularity(figure: Figure, table: Frame) -> None:
    error, held, spread = panels(figure, 3, share_y=False)
    sizes = sorted({int(row["rows"]) for row in table})
    whole = [row for row in table if row["rows"] == sizes[-1]]
    gammas = [row["gamma"] for row in whole]
    band = [row["sd"] for row in whole]
    lines(
        error,
        {"full": (gammas, [r["error"] for r in whole], band)},
        x="gamma",
        y="calibration error",
        title="Figure 7",
        log_x=True,
    )
    counts = {name: (gammas, [r[f"{name}_in_bin"] for r in whole]) for name in ("least", "median", "most")}
    lines(held, counts, x="gamma", y="rows in a bin", title="Figure 8", log_x=True)
    held.set_yscale("log")
    by_size = {f"{size} rows": (gammas, [r["sd"] for r in table if r["rows"] == size]) for size in sizes}
    lines(spread, by_size, x="gamma", y="standard deviation", title="Figure 9", log_x=True)
