"""The file of a comparison: read whole, and refused whole."""

from importlib.resources import files

import numpy as np
import pytest

import truecal as tc
from tests.study.interventions_files import BAD, TINY
from truecal.study import Plan
from truecal.study.interventions.plan import LensPlan, Recipe, check_plan, load_data


def written(folder, text, name="study.yaml"):
    path = folder / name
    path.write_text(text)
    return path


def test_every_problem_is_named_with_its_line(tmp_path):
    with pytest.raises(tc.InputError) as caught:
        Plan.read(written(tmp_path, BAD))
    lines = str(caught.value).splitlines()
    assert lines[0] == "study.yaml has 18 problems"
    named = [int(line.split(":")[1]) for line in lines[1:]]
    assert sorted(set(named)) == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 16]
    for words in ("did you mean 'name'?", "'flsd'", "'wide'"):
        assert words in str(caught.value)


def test_every_problem_of_the_contents_is_named_with_its_line(tmp_path):
    text = "data: {set: digits, validation: 0.7, test: 0.5}\nlenses:\n  likert: {low: [0, 0.5], high: [0.4, 1]}\n"
    with pytest.raises(
        tc.InputError, match=r"has 2 problems\n.*yaml:1: .*no rows to train on\n.*yaml:3: .*overlap between"
    ):
        Plan.read(written(tmp_path, text))


def test_what_does_not_fit_the_data_is_named_before_training(tmp_path):
    text = "data: {set: digits}\nlenses:\n  top_k: [12]\n  likert_of: wrong\n  labels: [11]\n"
    text += "  groupings: {a: {b: [1, 2], c: [3, 4, 99]}, d: {e: [0, 1], f: [2]}}\n"
    plan = Plan.read(written(tmp_path, text))
    with pytest.raises(tc.InputError) as caught:
        check_plan(plan, load_data(plan.data))
    said = str(caught.value)
    assert said.startswith("study.yaml has 5 problems\nstudy.yaml:3: top_k is 12, but there are only 10 classes")
    assert "study.yaml:6: classes in no group: 3, 4, 5" in said


def test_the_bundled_example_says_what_is_usual():
    with pytest.MonkeyPatch.context():
        plan = Plan.read(str(files("truecal.study.interventions") / "example.yaml"))
    assert plan.training == Recipe()
    assert plan.lenses.likert == LensPlan().likert
    assert plan.seeds == (0, 1, 2, 3, 4)
    assert set(plan.interventions) == {
        "label-smoothing",
        "mixup",
        "focal",
        "temperature",
        "bias-corrected-temperature",
        "histogram",
    }


def test_the_example_shows_the_usual_strengths(tmp_path):
    drawn = Plan.read(str(files("truecal.study.interventions") / "example.yaml"))
    bare = Plan.read(written(tmp_path, "data: {set: warped-digits}\n"))
    assert {k: tuple(v) for k, v in drawn.interventions.items()} == {k: tuple(v) for k, v in bare.interventions.items()}
    assert (drawn.data, drawn.accuracy_loss, drawn.lenses.gamma) == (bare.data, bare.accuracy_loss, bare.lenses.gamma)


def test_warped_digits_never_share_an_original(tmp_path):
    plan = Plan.read(written(tmp_path, "data: {set: warped-digits}\n")).data
    data = load_data(plan)
    sides = [set(part.original.tolist()) for part in (data.train, data.validation, data.test)]
    assert sum(map(len, sides)) == len(set.union(*sides)) == 1797
    again = load_data(plan)
    assert np.array_equal(data.test.inputs, again.test.inputs)
    assert len(data.test.labels) == 8 * len(sides[2])
    first, second = data.test.inputs[0], data.test.inputs[1]  # versions of one digit are neighbours, and differ
    assert data.test.original[0] == data.test.original[1]
    assert np.abs(first - second).max() > 0.05


def test_tiny_is_fine(tmp_path):
    plan = Plan.read(written(tmp_path, TINY))
    check_plan(plan, load_data(plan.data))
