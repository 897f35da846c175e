"""Grades follow from printed tests, and a wrong printed number turns them, in every row."""

import ast
import csv
from pathlib import Path

import pytest

from papers.catalogue import BY_PAPER, ITEMS, PAPERS
from papers.grading import (
    AGREES,
    DIRECTION_ONLY,
    FAILS,
    NOT_COMPUTABLE,
    UNDECIDED,
    Cells,
    Number,
    average,
    effect_of,
    grade,
    parse,
    planted,
)
from papers.page import FOLDER, quantities_of

ALGORITHMS = Path(__file__).with_name("test_algorithms.py")


def recorded():
    rows = []
    for name in BY_PAPER:
        with (FOLDER / "results" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows += [pytest.param(row, id=f"{name}, {row['item']}") for row in csv.DictReader(file)]
    return rows


RECORDED = recorded()
GRADED = [param for param in RECORDED if param.values[0]["quantities"]]
NUMBERS = [p for p in GRADED if any(clause.sides is None for clause in parse(p.values[0]["test"]))]


@pytest.mark.parametrize(
    ("test", "value", "se", "expected"),
    [
        ("x = 2 ~ 0.1", 2.05, 0.0, f"{AGREES} 0.1"),
        ("x = 2 ~ 0.1", 2.15, 0.0, FAILS),
        ("x = 2 ~ 0.1", 2.15, 0.04, f"{AGREES} 0.1"),  # within the tolerance and two standard errors
        ("x = 2 ~ 0.1", 2.05, 0.06, UNDECIDED),
        ("x = 2 ~ 0.1", 2.5, 0.06, FAILS),  # too far even for that noise
        ("x = 2 ~ 0.1; x > 1", 2.5, 0.06, DIRECTION_ONLY),
        ("x = 2 ~ 0.1; x > 1", 0.5, 0.06, FAILS),
        ("x > 1", 1.1, 0.06, UNDECIDED),
        ("x > 1", 1.2, 0.06, DIRECTION_ONLY),
        ("x < 2 * x", 1.2, 0.06, DIRECTION_ONLY),
        ("x > 1", 0.8, 0.06, FAILS),
    ],
)
def test_grades(test, value, se, expected):
    assert grade(test, {"x": Number(value, se)}) == expected


def test_a_table_agrees_where_all_of_its_cells_do():
    ours = Cells((Number(1.0), Number(2.04), Number(3.0, 0.01)), (1.0, 2.0, 3.0))
    assert grade("cells ~ 0.05", {"cells": ours}) == f"{AGREES} 0.05"
    assert grade("cells ~ 0.03", {"cells": ours}) == FAILS


def test_unknown_clauses_are_refused():
    with pytest.raises(ValueError, match="no clause"):
        parse("x is large")


def test_noise_that_raises_absolute_values_is_in_the_standard_error():
    quiet, noisy = (average([Number(0.01, se), Number(-0.01, se)] * 20, absolute=True) for se in (1e-6, 0.05))
    assert quiet.se < 1e-6
    assert noisy.se > 0.01


def test_every_item_has_a_test_or_says_why_not():
    for item in ITEMS:
        if item.is_suite_test or (item.experiment and item.test):
            assert item.words, item.item
        else:
            assert item.note, item.item
        assert not item.experiment or item.experiment in PAPERS, item.item


def test_suite_tests_that_are_named_exist():
    names = {node.name for node in ast.parse(ALGORITHMS.read_text(encoding="utf-8")).body if hasattr(node, "name")}
    for item in ITEMS:
        if item.is_suite_test:
            assert item.command.partition("::")[2] in names, item.item


def test_results_are_those_of_the_items():
    texts = [(item.item, item.about, item.command, item.printed, item.test, item.words) for item in ITEMS]
    columns = ("item", "about", "command", "printed", "test", "words")
    assert [tuple(param.values[0][name] for name in columns) for param in RECORDED] == texts
    for param in RECORDED:
        row = param.values[0]
        assert row["quantities"] or row["grade"].startswith((NOT_COMPUTABLE, AGREES))


@pytest.mark.parametrize("row", GRADED)
def test_recorded_grades_follow_from_recorded_numbers(row):
    assert grade(row["test"], quantities_of(row["quantities"])) == row["grade"]


@pytest.mark.parametrize("row", NUMBERS)
def test_a_wrong_printed_number_turns_the_grade(row):
    ours, clauses = quantities_of(row["quantities"]), parse(row["test"])
    directions = [clause for clause in clauses if clause.sides is not None]
    for place, clause in enumerate(clauses):
        if clause.sides is not None:
            continue
        other, changed = planted(clause, ours)
        assert other.outcome(changed) != clause.outcome(ours)
        if clause.outcome(ours) is False or any(d.outcome(ours) is not True for d in directions):
            continue  # the grade rests on more than this number
        turned = (*clauses[:place], other, *clauses[place + 1 :])
        if row["grade"].startswith(AGREES):
            assert grade(turned, changed) in (FAILS, DIRECTION_ONLY)


@pytest.mark.parametrize("row", NUMBERS)
def test_no_tolerance_is_wider_than_its_effect(row):
    ours = quantities_of(row["quantities"])
    for clause in parse(row["test"]):
        if clause.tolerance is not None:
            assert clause.tolerance < effect_of(clause, ours), clause.text
