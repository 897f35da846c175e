"""The comparison of interventions: its numbers are the library's, its choices what the rule says, and every run gives the same."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.study.interventions_files import MODELS, TINY, records
from truecal.cli.main import main
from truecal.study import Plan, compare_interventions
from truecal.study.interventions import models
from truecal.study.interventions.comparison import summarize
from truecal.study.interventions.judging import judge
from truecal.study.interventions.models import Outputs, Training, choose
from truecal.study.interventions.plan import load_data

TRUECAL = (sys.executable, "-m", "truecal.cli.main", "study", "interventions")


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="module")
def clean(config, tmp_path_factory):
    """A run without interruption, in this process: what was found, and the folder."""
    folder = tmp_path_factory.mktemp("clean")
    result = compare_interventions(config, folder)
    result.write(folder)
    return result, folder


def same_files(one, other):
    names = [f"{name}.csv" for name in ("results", "summary", "validation")]
    return [name for name in names if (one / name).read_bytes() != (other / name).read_bytes()] == []


def test_numbers_are_those_of_direct_calls(config, clean):
    result, folder = clean
    plan = Plan.read(config)
    data = load_data(plan.data)
    outputs = models.outputs_of_all(plan, data, folder / "models")
    names = np.arange(10)
    shape = tc.Grouping(plan.lenses.groupings["shape"])
    for seed in plan.seeds:
        base = outputs[Training("none", None, seed)]
        fixed = tc.recalibration.TemperatureScaling(input="logits").fit(base.validation, data.validation.labels)
        preds = tc.Predictions.from_probs(fixed.predict_proba(base.test), data.test.labels, classes=names)
        direct = {
            ("traditional", "all", "error"): tc.BinnedECE(bins=15, norm=1)(tc.TopLabel()(preds)).value,
            ("top-2", "all", "error"): tc.GeneralizedECE(lens=tc.TopK(2))(preds).value,
            ("full", "all", "error"): tc.GeneralizedECE()(preds).value,
            ("groups shape", "all", "error"): tc.GeneralizedECE(lens=shape)(preds).value,
            ("groups shape", "label bows", "error"): tc.GeneralizedECE(select=tc.by_label("bows"))(
                shape.predictions(preds)
            ).value,
            ("full", "label 8", "error"): tc.GeneralizedECE(select=tc.by_label(8))(preds).value,
            ("top-1", "all", "accuracy"): tc.scores.accuracy(preds),
            ("top-3", "all", "accuracy"): tc.groups.beyond_top({"t": preds}, ks=[3]).by_k["accuracy"][0],
            ("rank 2", "all", "confidence"): tc.groups.beyond_top({"t": preds}, ks=[2]).by_k["confidence"][0],
            ("full", "all", "entropy"): tc.groups.beyond_top({"t": preds}, ks=[1]).by_method["entropy"][0],
            ("full", "all", "log loss"): tc.scores.log_loss(preds),
        }
        report = tc.likert(shape.predictions(preds), class_name="loops")
        for category in report.categories:
            if category.count:
                direct[f"likert {category.name}", "all", "inter-interval"] = category.inter_interval.value
                direct[f"likert {category.name}", "all", "total-variation"] = category.within.value
            direct[f"likert {category.name}", "all", "share"] = category.share
        vector = tc.Canonical().sample(tc.by_label("loops")(shape.predictions(preds)))
        for group, column in zip(vector.names, vector.columns, strict=True):
            direct[f"groups shape: {group}", "label loops", "confidence"] = np.average(column, weights=vector.weights)
        mine = {
            (f.lens, f.selection, f.metric): f.value
            for f in records(result.results)
            if f.intervention == "temperature" and f.seed == seed
        }
        for key, value in direct.items():
            assert mine[key] == pytest.approx(value, rel=1e-12, abs=1e-15), key


def test_interventions_change_the_models(clean):
    result, _ = clean
    by_kind = {
        s.intervention: s
        for s in records(result.summary)
        if (s.lens, s.selection, s.metric) == ("full", "all", "entropy")
    }
    assert len(by_kind) == 7
    assert by_kind["label-smoothing"].mean > by_kind["none"].mean
    assert len({round(s.mean, 6) for s in by_kind.values()}) == 7


def test_interruptions_change_no_bit(config, clean, tmp_path, monkeypatch):
    trained = []
    train = models.train

    def counted(job, plan, data):
        trained.append(job)
        return train(job, plan, data)

    monkeypatch.setattr(models, "train", counted)

    def stop(step):
        assert step.total == MODELS
        if step.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare_interventions(config, tmp_path, progress=stop)
    assert len(trained) == 3
    damaged = next((tmp_path / "models").rglob("*.npz"))
    damaged.write_bytes(damaged.read_bytes()[:100])  # as after a power cut on a bad disk
    compare_interventions(config, tmp_path).write(tmp_path)
    assert len(trained) == MODELS + 1
    assert same_files(tmp_path, clean[1])


@pytest.mark.full
def test_a_killed_run_is_taken_up_again(processes, config, clean, tmp_path, capsys, monkeypatch):
    command = [*TRUECAL, config, "--folder", tmp_path, "--workers", "2"]
    running = processes.start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 300
    while len(list(tmp_path.rglob("*.npz"))) < 2 and running.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    family = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    children = family.read_text().split() if family.exists() else []
    running.send_signal(signal.SIGKILL)
    running.wait()
    selected = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert len(selected) >= 2
    while any(alive(pid) for pid in children) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(alive(pid) for pid in children)  # workers do not outlive the run
    assert main(["study", "interventions", str(config), "--folder", str(tmp_path), "--workers", "1", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""  # no bar into a pipe
    assert all(path.stat().st_mtime_ns == then for path, then in selected.items())
    assert same_files(tmp_path, clean[1])  # trained in two other processes, and here
    record = json.loads(captured.out)
    assert record["schema"] == "truecal.study-interventions"
    assert record["strengths"]["none"] is None
    assert len(record["summary"]) == len(clean[0].summary)
    assert all(os.path.exists(path) for path in record["written"])
    assert sum(path.endswith(".png") for path in record["written"]) >= 10


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def validation_of(labels, accuracy, confidence):
    """Logits that are right for a share of rows, all with one confidence."""
    rng = np.random.default_rng(0)
    mask = np.where(np.arange(len(labels)) < accuracy * len(labels), labels, (labels + 1) % 10)
    order = rng.permutation(len(labels))
    logits = np.zeros((len(labels), 10), np.float32)
    logits[np.arange(len(labels)), mask] = np.log(9 * confidence / (1 - confidence))
    return logits[order], order


def test_the_strength_with_the_lowest_error_that_keeps_the_accuracy_is_chosen(config):
    plan = Plan.read(config)
    plan = replace(plan, interventions={"focal": (1, 2, 3), "mixup": (0.1, 0.2)}, accuracy_loss=0.05)
    data = load_data(plan.data)
    labels = data.validation.labels
    values = {  # accuracy and confidence on the validation rows
        ("none", None): (0.90, 0.99),
        ("focal", 1): (0.90, 0.95),  # error 0.05
        ("focal", 2): (0.86, 0.88),  # error 0.02 and accurate enough: this one
        ("focal", 3): (0.80, 0.80),  # error 0.00, but ten points less accurate
        ("mixup", 0.1): (0.70, 0.75),  # both lose too much: the better one, with a note
        ("mixup", 0.2): (0.60, 0.60),
    }
    outputs = {}
    for (kind, strength), (right, sure) in values.items():
        for seed in plan.seeds:
            logits, order = validation_of(labels, right, sure)
            back = np.empty_like(logits)
            back[order] = logits
            outputs[Training(kind, strength, seed)] = Outputs(back, back)
    choice = choose(plan, data, outputs)
    assert dict(choice.strengths) == {"none": None, "focal": 2, "mixup": 0.1}
    assert len(choice.notes) == 1
    assert "no strength of mixup keeps the accuracy within 0.05" in choice.notes[0]
    assert choice.tried[Training("focal", 1, 0)][0] == pytest.approx(0.05, abs=2e-3)
    loose = choose(replace(plan, accuracy_loss=0.2), data, outputs)
    assert loose.strengths["focal"] == 3


def test_bins_are_chosen_by_rows_the_map_has_not_seen(config, clean, monkeypatch):
    plan = Plan.read(config)
    data = load_data(plan.data)
    outputs = models.outputs_of_all(plan, data, clean[1] / "models")
    pairs = []
    direct = models.recalibrate

    def watched(kind, strength, learn, labels, apply):
        pairs.append(
            (kind, {row.tobytes() for row in learn} & {row.tobytes() for row in apply}, len(learn), len(apply))
        )
        return direct(kind, strength, learn, labels, apply)

    monkeypatch.setattr(models, "recalibrate", watched)
    choose(plan, data, outputs)
    assert len(pairs) == 2 * 2 * (1 + 1 + 2)
    assert all(not shared for _, shared, _, _ in pairs)
    assert all(a + b == len(data.validation.labels) for *_, a, b in pairs)


def finding(kind, seed, value, lens="traditional", metric="error", selection="all", if_calibrated=0.01):
    keys = {"intervention": kind, "strength": "", "seed": seed, "lens": lens, "selection": selection, "metric": metric}
    return {**keys, "value": value, "n": 100, "if_calibrated": if_calibrated}


def summaries(rows):
    return records(summarize(pl.DataFrame(rows)))


def test_means_deviations_and_paired_differences():
    rng = np.random.default_rng(0)
    base, other = rng.random(5), rng.random(5)
    rows = [finding("none", s, v) for s, v in enumerate(base)] + [finding("focal", s, v) for s, v in enumerate(other)]
    none, focal = summaries(rows)
    from scipy.stats import ttest_rel

    assert focal.mean == pytest.approx(other.mean())
    assert focal.sd == pytest.approx(other.std(ddof=1))
    interval = ttest_rel(other, base).confidence_interval(0.95)
    assert (focal.difference_low, focal.difference_high) == pytest.approx((interval.low, interval.high))
    assert none.verdict == ""
    shifted = [finding("none", s, v) for s, v in enumerate(base)] + [
        finding("focal", s, v - 0.2 - 0.01 * s) for s, v in enumerate(base)
    ]
    assert summaries(shifted)[1].verdict == "lower"


def test_an_infinite_log_loss_stays_visible():
    rows = [finding("none", s, 0.5, "full", "log loss") for s in (0, 1)]
    rows += [finding("histogram", s, v, "full", "log loss") for s, v in ((0, np.inf), (1, 0.5))]
    result = summaries(rows)[1]
    assert (result.mean, result.sd, result.verdict) == (np.inf, None, "")


def test_the_calibrated_twin_is_what_calibrated_outputs_get(config):
    rng = np.random.default_rng(1)
    plan = Plan.read(config).lenses
    logits = rng.normal(scale=2, size=(6000, 10))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    calibrated = tc.Predictions.from_logits(logits, labels, classes=range(10))
    sure = tc.Predictions.from_logits(3 * logits, labels, classes=range(10))
    for number in judge(calibrated, plan):
        if number.metric == "error":
            assert number.value == pytest.approx(number.if_calibrated, abs=0.02), number
    errors = {(n.lens, n.selection): n for n in judge(sure, plan) if n.metric == "error"}
    assert errors["full", "all"].value > 5 * errors["full", "all"].if_calibrated
    # Among rows of one label even calibrated outputs are far from it: such an error is no sign of miscalibration.
    by_label = next(n for n in judge(calibrated, plan) if n.selection == "label 8")
    assert by_label.if_calibrated > 0.3


def test_the_answer_counts_what_it_says(clean):
    result, _ = clean
    rows = []
    for kind, usual, full in (
        ("none", 0.10, 0.10),
        ("focal", 0.05, 0.15),
        ("mixup", 0.05, 0.05),
        ("temperature", 0.2, 0.05),
    ):
        for seed in range(3):
            rows.append(finding(kind, seed, usual + 0.001 * seed, "traditional"))
            rows.append(finding(kind, seed, full + 0.001 * (seed * len(kind) % 3), "full"))
    kinds = {"none": None, "focal": 1, "mixup": 0.2, "temperature": None}
    result = replace(result, results=pl.DataFrame(rows), choice=replace(result.choice, strengths=kinds))
    lines = result.verdict()
    assert lines[0] == "focal: usual error lower; HIGHER full"
    assert lines[1] == "mixup: usual error lower; lower full"
    assert lines[2] == "temperature: usual error higher; lower full"
    assert lines[3].startswith("Of 3 interventions 2 (focal, mixup) clearly lower the usual error. Of these, 1 (mixup)")
    assert lines[3].endswith("and 1 (focal) have one that rose.")
    assert len(lines) == 4


def test_errors_among_one_label_are_shown_beside_those_of_a_calibrated_model(clean):
    rows = [finding("none", s, 0.2 + 0.001 * s) for s in range(3)] + [finding("focal", s, 0.1) for s in range(3)]
    for kind, value in (("none", 0.1), ("focal", 0.3)):
        rows += [finding(kind, s, value, "full", "error", "label 8", 0.32) for s in range(3)]
    result = replace(
        clean[0], results=pl.DataFrame(rows), choice=replace(clean[0].choice, strengths={"none": None, "focal": 1})
    )
    text = result.verdict()[-1]
    assert text.startswith("Among the rows of one label, 1 of these interventions' 1 errors are higher")
    assert text.endswith("on average they are 0.300, and would be 0.320 if the outputs were the truth.")


def test_tables_show_every_intervention_and_number(clean):
    result, _ = clean
    drawn = result.tables()
    assert len(drawn) == 9
    for table in drawn.values():
        assert set(table["intervention"]) >= set(result.choice.strengths)
    usual = next(s for s in records(result.summary) if s.intervention == "mixup" and s.lens == "traditional")
    assert f"{usual.mean:.4f} ± {usual.sd:.4f}" in result.text()


def test_pictures_draw_the_summary(clean, tmp_path):
    from matplotlib import pyplot

    from truecal.plot.bars import InterventionsDisplay, write_pictures

    result, _ = clean
    values = {name: InterventionsDisplay(columns, ylabel=y) for name, (y, columns) in result.pictures().items()}
    assert {"errors", "groups", "labels", "likert", "likert_share", "top_k_accuracy", "entropy", "confidence"} <= set(
        values
    )
    frame = values["errors"].frame()
    usual = next(s for s in records(result.summary) if s.intervention == "focal" and s.lens == "traditional")
    points = list(zip(frame["intervention"], frame["what"], strict=True)).index(("focal", "traditional"))
    assert (frame["mean"][points], frame["sd"][points]) == (usual.mean, usual.sd)
    assert list(dict.fromkeys(values["groups"].frame()["what"])) == ["shape", "halves", "full"]
    drawn = values["errors"].plot()
    bars = drawn.ax_.containers
    assert sum(len(b) for b in bars if hasattr(b, "patches")) == len(frame["mean"])
    looks = {(b.patches[0].get_facecolor(), b.patches[0].get_hatch()) for b in bars if hasattr(b, "patches")}
    assert len(looks) == 7  # all interventions look different
    pyplot.close("all")
    assert len(write_pictures(result.pictures(), tmp_path)) == len(values)
    assert pyplot.get_fignums() == []
    with pytest.raises(tc.InputError, match="no column 'sd'"):
        InterventionsDisplay({"intervention": ["a"], "what": ["b"], "mean": [1.0]})


def test_the_command_refuses_before_it_trains(tmp_path, config, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refused(*arguments):
        assert main(["study", "interventions", *map(str, arguments)]) == 2
        return capsys.readouterr().err

    bad = tmp_path / "bad.yaml"
    bad.write_text("data: {set: digits}\nseeds: []\nlenses: {gamma: 2}\n")
    text = refused(bad)
    assert text.splitlines()[0] == "truecal: bad.yaml has 2 problems"
    assert "bad.yaml:2" in text
    assert "bad.yaml:3" in text
    bad.write_text("data: {set: digits}\nlenses: {labels: [11]}\n")
    assert "bad.yaml:2: there is no class 11" in refused(bad)
    assert not (tmp_path / "interventions").exists()
    changed = tmp_path / "mine" / "interventions.yaml"
    changed.parent.mkdir()
    changed.write_text(bad.read_text())
    assert "interventions.yaml:2: there is no class 11" in refused("--folder", "mine")
    assert changed.read_text() == bad.read_text()
    monkeypatch.setitem(sys.modules, "torch", None)
    assert refused(config).startswith("truecal: this needs torch; install it with: pip install 'truecal[torch]'")
