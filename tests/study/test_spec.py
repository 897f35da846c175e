"""What a study file may say, and that everything wrong with it is reported at once, with its line, before any work."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.study.studies import write_files, write_study
from truecal.names import RECALIBRATORS
from truecal.study.read_spec import read_spec


def problems_of(path):
    with pytest.raises(tc.InputError) as raised:
        tc.study.Study.read(path)
    return str(raised.value)


def test_a_pattern_names_the_parts_of_paths(tmp_path):
    write_files(tmp_path, models=("mlp-large", "tree"), datasets=("digits", "faces"), severities=(0, 3), seeds=(0, 12))
    more = "models:\n  mlp-large: {family: net, size: 25e6}\n"
    study = tc.study.Study.read(write_study(tmp_path, more))
    assert len(study) == 16
    assert study.models == ("mlp-large", "tree")
    values = {source.key: source for source in study.spec.sources}
    one = values["mlp-large", "faces", 3.0, 12]
    assert one.path == tmp_path / "runs/faces/mlp-large-3-12.npz"
    assert (one.family, one.size) == ("net", 25e6)
    assert values["tree", "digits", 0.0, 0].family is None


def test_a_pattern_that_matches_other_files_is_refused_by_name(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    study = tmp_path / "study.yaml"
    study.write_text('name: s\npredictions:\n  - {files: "{model}.txt", dataset: d}\ncolumns: {label: y, score: p}\n')
    problems = problems_of(study)
    assert "a.txt is not of a known format (.npz, .csv" in problems
    assert problems.count("a.txt") == 1


def test_text_files_are_read_as_anywhere_else(tmp_path):
    (tmp_path / "a.csv").write_text("y;p\n1;0,75\n\n0;0,25\n")
    study = tmp_path / "study.yaml"
    study.write_text(
        'name: s\npredictions:\n  - {files: "{model}.csv", dataset: d}\ncolumns: {label: y, probs: p}\nmetrics: [error]\n'
    )
    assert tc.study.Study.read(study).models == ("a",)


def test_files_one_by_one_and_stars(tmp_path):
    write_files(tmp_path)
    text = """\
name: by hand
predictions:
  - {file: runs/digits/mlp-0-0.npz, model: first, dataset: d, size: 10}
  - {files: "runs/*/{model}-0-*.npz", dataset: e, family: f}
columns: {label: labels, logits: logits}
"""
    sources = read_spec(write_study(tmp_path, text=text)).sources
    assert [(s.model, s.dataset, s.size, s.family) for s in sources] == [
        ("first", "d", 10.0, None),
        ("mlp", "e", None, "f"),
        ("tree", "e", None, "f"),
    ]


def test_brackets_in_paths_are_letters(tmp_path):
    folder = tmp_path / "odd[1]"
    write_files(folder)
    assert len(tc.study.Study.read(write_study(folder))) == 2


def test_all_problems_at_once_with_their_lines(tmp_path):
    write_files(tmp_path)
    text = """\
name: bad
predictions:
  - {file: missing.npz, model: a, dataset: d}
  - {files: "nothing/{model}.npz", dataset: d}
  - {file: runs/digits/mlp-0-0.npz, model: b, dataset: d, severity: high}
  - {file: runs/digits/mlp-0-0.npz, dataset: d}
  - {file: runs/digits/mlp-0-0.npz, model: c, dataset: d}
  - {file: runs/digits/tree-0-0.npz, model: c, dataset: d}
columns: {label: labels, logits: logits}
lenses: [top-label, bottom-label]
metrics: [ece-width-15-l1, ece-width-0-l1, ece-tall-15-l1]
recalibrators: [temperature, prayer]
"""
    said = problems_of(write_study(tmp_path, text=text))
    assert said.startswith("study.yaml has 9 problems")
    for line in (
        f"study.yaml:3: there is no file {tmp_path}/missing.npz",
        "study.yaml:4: no file matches 'nothing/{model}.npz'",
        "study.yaml:5: severity must be a number of at least 0, not 'high'",
        "study.yaml:6: an entry of predictions needs 'model'",
        "study.yaml:8: 'c' on 'd' is there twice",
        "study.yaml:10: there is no lens 'bottom-label'",
        "study.yaml:11: 'ece-width-0-l1' asks for 0 bins",
        "study.yaml:11: there is no metric 'ece-tall-15-l1'",
        "study.yaml:12: there is no recalibrator 'prayer'",
    ):
        assert line in said


def test_all_problems_of_the_form_at_once_and_first(tmp_path):
    text = """\
name: bad
predictionz: []
predictions:
  - {file: missing.npz, model: a, dataset: d}
columns: {label: labels, logits: logits}
split: {fraction: 1.5, seed: -1}
level: 95
workers: 0
intervals: maybe
"""
    said = problems_of(write_study(tmp_path, text=text))
    assert said.startswith("study.yaml has 6 problems")
    for line in (
        "study.yaml:2: a study has no option 'predictionz'; did you mean 'predictions'?",
        "study.yaml:6: fraction must be a number between 0 and 1, not 1.5",
        "study.yaml:6: seed must be a whole number of at least 0, not -1",
        "study.yaml:7: level must be a number between 0 and 1, not 95",
        "study.yaml:8: workers must be a whole number of at least 1, not 0",
        "study.yaml:9: intervals must be true, false or bootstrap, not 'maybe'",
    ):
        assert line in said


@pytest.mark.parametrize(
    ("changed", "words"),
    {
        "rows": (lambda z, y: (z[:-1], y[:-1]), "tree-0-0.npz has 119 rows of 3 classes but .*mlp-0-0.npz 120 rows"),
        "labels": (lambda z, y: (z, np.roll(y, 1)), r"different labels in \d+ of 120 rows, the first in row \d+"),
        "classes": (
            lambda z, y: (np.hstack([z, z]), y),
            "tree-0-0.npz has 120 rows of 6 classes but .*mlp-0-0.npz 120 rows of 3",
        ),
        "range": (lambda z, y: (z, y + 1), "tree-0-0.npz: labels"),
        "length": (lambda z, y: (z, y[:-1]), "tree-0-0.npz: there are 120 rows of probabilities but 119 labels"),
        "shape": (lambda z, y: (z[:, :1], y), r"not of shape \(120, 1\)"),
    }.values(),
)
def test_files_that_do_not_fit_together(tmp_path, changed, words):
    write_files(tmp_path)
    path = tmp_path / "runs/digits/tree-0-0.npz"
    with np.load(path) as arrays:
        logits, labels = changed(arrays["logits"], arrays["labels"])
    np.savez(path, logits=logits, labels=labels)
    with pytest.raises(tc.InputError, match=words):
        tc.study.Study.read(write_study(tmp_path))


def test_damaged_files_and_missing_arrays_are_named(tmp_path):
    write_files(tmp_path, models=("a", "b", "c"))
    (tmp_path / "runs/digits/a-0-0.npz").write_bytes(b"PK not really")
    np.savez(tmp_path / "runs/digits/b-0-0.npz", probs=np.ones(3), labels=np.ones(3, int))
    text = problems_of(write_study(tmp_path))
    assert "a-0-0.npz: it is damaged or not an npz file" in text
    assert "b-0-0.npz: there is no array 'logits'; it has probs, labels" in text


def test_seeds_may_have_other_rows_but_severities_of_a_recalibrated_study_may_not(tmp_path):
    write_files(tmp_path, severities=(0, 1), seeds=(0, 1))
    tc.study.Study.read(write_study(tmp_path, "recalibrators: [temperature]\n"))
    for model in ("mlp", "tree"):
        path = tmp_path / f"runs/digits/{model}-1-0.npz"
        with np.load(path) as arrays:
            np.savez(path, logits=arrays["logits"], labels=np.roll(arrays["labels"], 1))
    tc.study.Study.read(write_study(tmp_path))
    assert "so the rows of the fit cannot be left out" in problems_of(
        write_study(tmp_path, "recalibrators: [temperature]\n")
    )


@pytest.mark.parametrize(
    ("more", "words"),
    {
        "lens": (
            "lenses: ['class:owl']\n",
            "study.yaml:5: dataset 'digits': there is no class 'owl' among the 3 classes",
        ),
        "described": ("models: {mpl: {size: 3}}\n", "describes 'mpl', but no prediction file is of that model"),
        "none": ("recalibrators: [none]\n", "always there"),
        "twice": ("lenses: [top-label, top-label]\n", "listed twice"),
    }.values(),
)
def test_other_refusals(tmp_path, more, words):
    write_files(tmp_path)
    with pytest.raises(tc.InputError, match=words):
        tc.study.Study.read(write_study(tmp_path, more))


def test_columns_of_tables_are_checked(tmp_path):
    pl.DataFrame({"y": ["a", "b"], "p_a": [0.5, 0.5], "p_b": [0.5, 0.5]}).write_parquet(tmp_path / "m.parquet")
    text = "name: t\npredictions:\n  - {{file: m.parquet, model: m, dataset: d}}\ncolumns: {{label: {}, probs: '{}'}}\n"
    spec = read_spec(write_study(tmp_path, text=text.format("y", "p_*")))
    assert spec.options.columns.kind == "probs"
    assert "there is no column 'x'" in problems_of(write_study(tmp_path, text=text.format("x", "p_*")))
    assert "no column matches 'q_*'" in problems_of(write_study(tmp_path, text=text.format("y", "q_*")))


def test_every_recalibrator_of_the_library_may_be_named(tmp_path):
    write_files(tmp_path)
    words = ", ".join(RECALIBRATORS)
    study = tc.study.Study.read(write_study(tmp_path, f"recalibrators: [{words}]\n"))
    assert study.spec.options.recalibrators == tuple(RECALIBRATORS)


def test_the_study_file_of_the_documentation_lacks_nothing_but_the_files(tmp_path):
    text = (Path(__file__).parents[2] / "docs/studies.md").read_text()
    said = problems_of(write_study(tmp_path, text=text.split("```yaml\n")[1].split("```")[0]))
    wrong = [line.partition(": ")[2] for line in said.splitlines()[1:]]
    assert len(wrong) == 6
    assert wrong[0].startswith("no file matches 'runs/{dataset}/{model}-{severity}-{seed}.npz'")
    assert wrong[1] == f"there is no file {tmp_path}/other/vgg16.parquet"
    assert wrong[2].startswith("no file matches 'c/{corruption}/{severity}/{model}.npz'")
    assert wrong[3] == "models describes 'resnet50', but no prediction file is of that model"
    assert [text.split("'")[1] for text in wrong[4:]] == ["cifar10-c-*", "street"]
