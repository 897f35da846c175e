"""The real study that is shipped as the example: what it is made of, that it can be stopped, and that it runs."""

import sys
import time

import numpy as np
import pytest

import truecal as tc
from truecal.errors import InputError
from truecal.study import make_example
from truecal.study.example import SHIFTS, load, models, plan, shifted


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The quick example, made in this process."""
    result = tmp_path_factory.mktemp("example")
    make_example(result, quick=True, workers=1)
    return result


def files(folder):
    return sorted((folder / "predictions").rglob("*.npz"))


def test_the_example_is_as_large_as_promised():
    whole = plan()
    assert len(whole.models) >= 12
    families = {model.family for model in whole.models}
    assert families == {"linear", "trees", "boosting", "neighbours", "bayes", "svm", "mlp"}
    assert len({model.name for model in whole.models}) == len(whole.models)
    assert len(whole.data) == 4
    assert whole.severities == (0, 1, 2, 3, 4, 5)
    assert len(whole.seeds) == 3
    assert set(SHIFTS["digits"]) == {"digits-noise", "digits-blur", "digits-dropout"}


@pytest.mark.parametrize("name", sorted(SHIFTS))
def test_shifts_grow_from_nothing(name):
    data = load(name)
    for dataset, shift in SHIFTS[name].items():
        assert np.array_equal(shifted(data, dataset, shift, 0, seed=0), data.test_x)
        far = [np.sqrt(np.mean((shifted(data, dataset, shift, s, seed=0) - data.test_x) ** 2)) for s in range(6)]
        assert np.all(np.diff(far) > 0)
        again = shifted(data, dataset, shift, 3, seed=0)
        assert np.array_equal(again, shifted(data, dataset, shift, 3, seed=0))
    if name == "digits":
        gone = shifted(data, "digits-dropout", SHIFTS[name]["digits-dropout"], 5, seed=1) != data.test_x
        inked = data.test_x > data.test_x.min()
        assert gone[inked].mean() == pytest.approx(0.4, abs=0.01)
        assert not np.array_equal(
            shifted(data, "digits-noise", SHIFTS[name]["digits-noise"], 2, seed=0),
            shifted(data, "digits-noise", SHIFTS[name]["digits-noise"], 2, seed=1),
        )


def test_no_row_is_both_learnt_and_judged_and_seeds_learn_from_different_rows():
    for name in SHIFTS:
        data = load(name)
        learnt = {row.tobytes() for row in data.train_x}
        shared = sum(row.tobytes() in learnt for row in data.test_x)
        assert shared == 0
        first, second = (data.training_rows(seed)[0] for seed in (0, 1))
        assert len(first) == len(second) == round(0.8 * len(data.train_x))
        assert not np.array_equal(first, second)


def test_predictions_are_real_and_never_call_anything_impossible(folder):
    assert len(files(folder)) == 5 * 4 * 2
    for path in files(folder):
        preds = tc.read(path, label="labels", logits="logits")
        severity = int(path.stem.split("-")[1])
        arrays = np.load(path)
        assert arrays["logits"].dtype == np.float32
        smallest = 1e-3 / arrays["logits"].shape[1]
        assert np.exp(arrays["logits"]).min() >= smallest * 0.999
        assert np.exp(arrays["logits"], dtype=np.float64).sum(axis=1) == pytest.approx(1, abs=1e-6)
        accuracy = tc.scores.accuracy(preds)
        if severity == 0:
            assert accuracy > 0.7


def test_what_is_there_is_not_made_again(folder, tmp_path):
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files(folder)}
    first, last = files(folder)[3], files(folder)[-1]
    first.unlink()
    last.unlink()
    steps = []
    make_example(folder, quick=True, workers=2, progress=lambda step: steps.append((step.done, step.total)))
    assert steps == [(8, 10), (9, 10), (10, 10)]
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files(folder)}
    assert {path: content for path, (_, content) in after.items()} == {
        path: content for path, (_, content) in before.items()
    }  # the same numbers from another process
    remade = {path for path in before if after[path][0] != before[path][0]}
    assert {first, last} <= remade
    assert {path.parent.name for path in remade} == {first.parent.name, last.parent.name}
    assert not list(folder.rglob("*.part"))


def test_a_folder_of_something_else_is_refused(folder, tmp_path):
    path = tmp_path / "predictions" / "digits-noise" / "my-model" / "severity-0-seed-0.npz"
    path.parent.mkdir(parents=True)
    path.write_bytes(files(folder)[0].read_bytes())
    with pytest.raises(InputError, match="my-model"):
        make_example(tmp_path, quick=True)
    with pytest.raises(InputError, match="workers"):
        make_example(tmp_path, workers=0)


@pytest.mark.full
def test_killed_at_any_moment_it_goes_on(processes, tmp_path):
    code = f"from truecal.study.example import make_example; make_example({str(tmp_path)!r}, quick=True, workers=1)"
    run = processes.start(sys.executable, "-c", code, env={"OPENBLAS_NUM_THREADS": "1"})
    while len(files(tmp_path)) < 7:
        assert run.poll() is None
        time.sleep(0.01)
    run.kill()
    run.wait()
    selected = {path: path.stat().st_mtime_ns for path in files(tmp_path)}
    assert not (tmp_path / "study.yaml").exists()
    make_example(tmp_path, quick=True, workers=1)
    assert len(files(tmp_path)) == 40
    unchanged = [path for path, points in selected.items() if path.stat().st_mtime_ns == points]
    assert len(unchanged) >= 6  # only the training that was cut off is done again
    assert (tmp_path / "study.yaml").exists()


def test_the_command_trains_evaluates_and_writes_the_page(folder, capsys):
    from truecal.cli.main import main

    assert main(["study", "example", str(folder), "--quick", "--workers", "1"]) == 0
    captured = capsys.readouterr().out
    assert "5 models, 40 prediction files" in captured
    page = (folder / "page.html").read_text()
    assert "Classifiers under shift" in page
    assert "Before and after temperature" in page
    store = tc.study.Store(folder / "store")
    frame = store.frame()
    assert set(frame["model"]) == {model.name for model in plan(quick=True).models}
    assert set(frame["severity"]) == {0.0, 3.0}
    row = frame.filter(
        (frame["model"] == "logistic")
        & (frame["dataset"] == "cancer")
        & (frame["severity"] == 3)
        & (frame["recalibrator"] == "none")
        & (frame["metric"] == "error")
    )
    preds = tc.read(
        folder / "predictions" / "cancer" / "logistic" / "severity-3-seed-0.npz", label="labels", logits="logits"
    )
    assert row["n"][0] <= len(preds)
    assert row["value"][0] == pytest.approx(1 - tc.scores.accuracy(preds), abs=0.05)
    assert main(["study", "page", str(folder / "nothing"), "--out", str(folder / "no.html")]) == 2
    assert "is no store" in capsys.readouterr().err


def kept_numbers(fitted):
    """How many numbers a fitted model keeps, by what it is."""
    if hasattr(fitted, "coefs_"):
        return sum(part.size for part in fitted.coefs_ + fitted.intercepts_)
    if hasattr(fitted, "support_vectors_"):
        return fitted.support_vectors_.size + fitted.dual_coef_.size
    if hasattr(fitted, "_predictors"):
        return sum(2 * len(tree.nodes) for rounds in fitted._predictors for tree in rounds)
    if hasattr(fitted, "estimators_"):
        return sum(kept_numbers(tree) for tree in fitted.estimators_)
    if hasattr(fitted, "tree_"):
        return 2 * fitted.tree_.node_count + 10 * fitted.tree_.n_leaves
    if hasattr(fitted, "_fit_X"):
        return fitted._fit_X.size
    if hasattr(fitted, "theta_"):
        return 2 * fitted.theta_.size
    return fitted.coef_.size + fitted.intercept_.size


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
@pytest.mark.filterwarnings("ignore")
def test_sizes_are_those_of_the_fitted_models(model):
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        size = kept_numbers(model.make(0).fit(*load("digits").training_rows(0)))
    assert 0.8 < model.size / size < 1.25
