"""The protocol of Minderer et al. (2021), section 4.1, computed again by naive code that shares nothing with the library.

Twelve models on clean data, two corruptions at three severities, and an out-of-distribution set: a fifth of the clean rows fits a
temperature; those rows are left out of the clean data and of every corruption; the out-of-distribution set is judged whole, its
logits divided by that temperature.
"""

import json

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.study.studies import write_study
from truecal.study.rows import held_out

MODELS, CLASSES, ROWS, OTHER_ROWS = 12, 5, 240, 130
CORRUPTIONS, SEVERITIES = ("noise", "blur"), (1, 2, 3)
METRICS = (
    "error",
    "nll",
    "brier",
    "confidence",
    "ece-width-15-l1",
    "ece-mass-100-l1",
    "ece-width-7-l2",
    "ece-mass-15-max",
)
STUDY = f"""\
name: the protocol
covariates: [corruption, pretraining]
predictions:
  - {{files: "clean/{{model}}.npz", dataset: clean}}
  - {{files: "c/{{corruption}}-{{severity}}/{{model}}.npz", dataset: "c-{{corruption}}"}}
  - {{files: "ood/{{model}}.npz", dataset: ood}}
datasets:
  c-*: {{clean: clean}}
  ood: {{by: clean}}
columns: {{label: y, logits: z}}
recalibrators: [temperature]
split: {{fraction: 0.2, seed: 7}}
lenses: [top-label, all-label, class-wise]
metrics: [{", ".join(METRICS)}]
intervals: false
models:
"""


def logits_of(rng, labels, sharp, signal):
    z = rng.normal(size=(len(labels), CLASSES))
    z[np.arange(len(labels)), labels] += signal
    return (sharp * z).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Prediction files of all models; returns the folder."""
    root = tmp_path_factory.mktemp("protocol")
    labels = np.random.default_rng(1).integers(0, CLASSES, ROWS)
    other = np.random.default_rng(2).integers(0, CLASSES, OTHER_ROWS)
    for name in ("clean", "ood", *(f"c/{c}-{s}" for c in CORRUPTIONS for s in SEVERITIES)):
        (root / name).mkdir(parents=True)
    text = STUDY
    for m in range(MODELS):
        rng = np.random.default_rng((3, m))
        sharp = 0.5 + 0.25 * m
        np.savez(root / f"clean/m{m}.npz", z=logits_of(rng, labels, sharp, 2.0), y=labels)
        np.savez(root / f"ood/m{m}.npz", z=logits_of(rng, other, sharp, 1.0), y=other)
        for i, corruption in enumerate(CORRUPTIONS):
            for severity in SEVERITIES:
                z = logits_of(rng, labels, sharp, 2.0 - 0.4 * severity - 0.1 * i)
                np.savez(root / f"c/{corruption}-{severity}/m{m}.npz", z=z, y=labels)
        text += f"  m{m}: {{family: f{m % 3}, size: {10 * (m + 1)}, pretraining: {'big' if m % 2 else 'small'}}}\n"
    write_study(root, text=text)
    return root


@pytest.fixture(scope="module")
def store(folder):
    return tc.study.Study.read(folder / "study.yaml").run(folder / "store", workers=1)


# ------------------------------------------------------------------ the naive side


def softmax(z):
    e = np.exp(z - z.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]


def temperature(z, y):
    """Where the derivative of the log loss in 1 / T is 0, by bisection."""

    def slope(b):
        p = softmax(z * b)
        return float(np.sum((p * z).sum(axis=1) - z[np.arange(len(y)), y]))

    low, high = 1e-3, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 2 / (low + high)


def ece(scores, hits, scheme, bins, norm):
    n = len(scores)
    if scheme == "width":
        bin_of = [min(int(np.floor(score * bins)), bins - 1) for score in scores]
        members = [[i for i in range(n) if bin_of[i] == k] for k in set(bin_of)]
    else:
        order = sorted(range(n), key=lambda i: scores[i])
        members = [order[-(-k * n // bins) : -(-(k + 1) * n // bins)] for k in range(bins)]
    gaps = [(len(m) / n, abs(np.mean(hits[m] - scores[m]))) for m in members if m]
    if norm == "max":
        return max(gap for _, gap in gaps)
    p = int(norm[1])
    return sum(share * gap**p for share, gap in gaps) ** (1 / p)


def naive(p, y, lens, metric):
    top = p.argmax(axis=1)
    if metric == "error":
        return np.mean([t != label for t, label in zip(top, y, strict=True)])
    if metric == "confidence":
        return np.mean(p.max(axis=1))
    if metric == "nll":
        return np.mean([-np.log(p[i, label]) for i, label in enumerate(y)])
    if metric == "brier":
        return np.mean([sum((p[i, k] - (label == k)) ** 2 for k in range(p.shape[1])) for i, label in enumerate(y)])
    _, scheme, bins, norm = metric.split("-")
    if lens == "top-label":
        return ece(p.max(axis=1), top == y, scheme, int(bins), norm)
    columns = [(p[:, k], y == k) for k in range(p.shape[1])]
    if lens == "all-label":
        return ece(
            np.concatenate([c for c, _ in columns]), np.concatenate([h for _, h in columns]), scheme, int(bins), norm
        )
    each = [ece(c, h, scheme, int(bins), norm) for c, h in columns]
    power = 1 if norm == "max" else int(norm[1])
    return max(each) if norm == "max" else np.mean([e**power for e in each]) ** (1 / power)


def file_of(folder, model, dataset, severity):
    name = {"clean": "clean", "ood": "ood"}.get(dataset, f"c/{dataset[2:]}-{severity:g}")
    with np.load(folder / name / f"{model}.npz") as arrays:
        return arrays["z"].astype(np.float64), arrays["y"]


def test_every_number_of_the_study(folder, store):
    frame = store.frame()
    positions = 1 + len(CORRUPTIONS) * len(SEVERITIES) + 1
    assert frame.height == MODELS * positions * 2 * (4 + 3 * 4)
    labels = file_of(folder, "m0", "clean", 0)[1]
    fitted = held_out(labels, 0.2, 7)
    fits = {row["model"]: row for row in store.fits().iter_rows(named=True)}
    worst = 0.0
    own_values = {}  # temperatures by bisection: nothing of the study's enters what is compared below
    for model, fit in fits.items():
        clean, y_clean = file_of(folder, model, "clean", 0)
        own_values[model] = temperature(clean[fitted], y_clean[fitted])
        assert fit["temperature"] == pytest.approx(own_values[model], rel=1e-10)
    for (model, dataset, severity, recalibrator), part in frame.partition_by(
        ["model", "dataset", "severity", "recalibrator"], as_dict=True
    ).items():
        z, y = file_of(folder, model, dataset, severity)
        z = z / (own_values[model] if recalibrator == "temperature" else 1.0)
        if dataset != "ood":
            z, y = z[~fitted], y[~fitted]
        p = softmax(z)
        for row in part.iter_rows(named=True):
            expected = naive(p, y, row["lens"], row["metric"])
            worst = max(worst, abs(row["value"] - expected))
            assert row["value"] == pytest.approx(expected, abs=1e-9), (row["dataset"], row["lens"], row["metric"])
            assert row["n"] == len(y) * (p.shape[1] if row["lens"] == "all-label" else 1)
    assert worst < 1e-9


def test_results_say_what_was_fitted_where(store):
    frame = store.frame()
    before, after = (frame.filter(pl.col("recalibrator") == name) for name in ("none", "temperature"))
    assert before["fit_rows"].null_count() == before.height
    assert after["fit_on"].unique().to_list() == ["clean"]
    assert after["fit_rows"].unique().to_list() == [ROWS // 5]
    assert set(frame.filter(pl.col("lens") == "top-label")["n"].unique()) == {ROWS - ROWS // 5, OTHER_ROWS}
    assert store.fits()["rows"].unique().to_list() == [ROWS // 5]
    assert store.fits().height == MODELS  # one map for every model, whatever is recalibrated by it


def test_the_store_holds_the_rows_of_the_split(store):
    rows = store.split_rows("m3", "clean")
    assert len(rows) == len(set(rows)) == ROWS // 5
    judged = store.frame().filter(
        (pl.col("model") == "m3") & (pl.col("dataset") == "clean") & (pl.col("metric") == "nll")
    )
    assert judged["n"][0] + len(rows) == ROWS
    with pytest.raises(tc.InputError, match="no recalibrator was fitted for 'nobody'"):
        store.split_rows("nobody", "clean")


def test_covariates_are_columns(store):
    frame = store.frame()
    assert set(frame["corruption"].unique()) == {None, *CORRUPTIONS}
    assert frame.filter(pl.col("dataset") == "c-blur")["corruption"].unique().to_list() == ["blur"]
    assert dict(frame.select("model", "pretraining").unique().iter_rows())["m3"] == "big"


def test_a_refit_would_give_another_number(folder, store):
    """The oracle can fail: the temperature of the out-of-distribution set itself, or of all clean rows, is another one."""
    fitted = store.fits().filter(pl.col("model") == "m5")["temperature"].item()
    assert abs(temperature(*file_of(folder, "m5", "ood", 0)) - fitted) > 0.01
    assert abs(temperature(*file_of(folder, "m5", "clean", 0)) - fitted) > 1e-4


def declared(folder, datasets, more=""):
    text = (folder / "study.yaml").read_text()
    start, end = text.index("datasets:"), text.index("columns:")
    path = folder / "other.yaml"
    path.write_text(text[:start] + datasets + more + text[end:])
    return path


@pytest.mark.parametrize(
    ("datasets", "words"),
    {
        "unknown": ("datasets: {c-*: {clean: imagenet}, ood: {by: clean}}\n", "clean names 'imagenet', but no"),
        "both": ("datasets: {c-*: {clean: clean, by: clean}}\n", "cannot both share the rows of 'clean'"),
        "typo": ("datasets: {c-*: {clena: clean}}\n", "no option 'clena'; did you mean 'clean'"),
        "never": ("datasets: {x-*: {clean: clean}}\n", "describes 'x-\\*', but no prediction file"),
        "shares": ("datasets: {c-*: {clean: clean}, ood: {clean: clean}}\n", "has other labels than .*clean/m0.npz"),
        "nothing": ("", "no file of dataset 'c-blur', severity 0, seed 0 to fit on"),
    }.values(),
)
def test_declarations_that_cannot_be_meant(folder, datasets, words):
    with pytest.raises(tc.InputError, match=words):
        tc.study.Study.read(declared(folder, datasets))


def test_nothing_is_recalibrated_on_itself_without_a_word(folder):
    text = (folder / "study.yaml").read_text().replace("split: {fraction: 0.2, seed: 7}\n", "")
    path = folder / "silent.yaml"
    path.write_text(text.replace("  ood: {by: clean}\n", ""))
    with pytest.raises(tc.InputError, match="'clean', 'ood' have the same classes and different rows"):
        tc.study.Study.read(path)
    path.write_text(text.replace("ood: {by: clean}", "ood: {clean: ood}"))  # asked for
    assert len(tc.study.Study.read(path)) == MODELS * 8


def test_fits_are_readable_without_the_library(store):
    path = sorted((store.folder / "fits").iterdir())[0]
    record = json.loads(path.read_text())
    assert record["temperature"] == pytest.approx(json.loads(record["map"])["learned"]["temperature"])
