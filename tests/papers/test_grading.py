"""Grades follow from printed tests, and a wrong printed number turns them, in every row."""

import csv
from dataclasses import replace

import pytest

from papers.catalogue import BY_PAPER, ITEMS, PAPERS
from papers.grading import (
    AGREES,
    DIRECTION_ONLY,
    FAILS,
    NOT_COMPUTABLE,
    SE_FACTOR,
    UNDECIDED,
    Cells,
    Number,
    average,
    effect_of,
    grade,
    parse,
)
from papers.page import FOLDER, quantities_of
from tests.papers import test_algorithms


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
    noisy = Cells((Number(1.0), Number(2.3)), (1.0, 2.0), (0.01, 0.1))  # print is known to 0.1
    assert grade("cells ~ 2.9 se", {"cells": noisy}) == FAILS
    assert grade("cells ~ 3.1 se", {"cells": noisy}).startswith(f"{AGREES} 3.1 standard errors")


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
    for item in ITEMS:
        if item.is_suite_test:
            assert callable(getattr(test_algorithms, item.command.partition("::")[2], None)), item.item


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


def planted(clause, ours):
    """The clause and the numbers with a wrong printed number where it holds or is undecided, and a right one where it fails."""
    holds = clause.outcome(ours) is not False
    if clause.sides is not None:
        exact = {name: replace(ours[name], se=0.0) for name in clause.names}
        turn = holds == clause.outcome({**ours, **exact})  # an undecided direction may be wrong as it stands
        return replace(clause, sides=clause.sides[::-1]) if turn else clause, exact
    quantity = ours[clause.name]
    if isinstance(quantity, Number):
        return replace(clause, printed=_wrong(quantity, clause.tolerance) if holds else quantity.value), {}
    cells = [n.value for n in quantity.ours]
    if holds:
        tolerance = clause.tolerance * (quantity.printed_se[0] if clause.in_se else 1)
        cells = [_wrong(quantity.ours[0], tolerance), *quantity.printed[1:]]
    return clause, {clause.name: replace(quantity, printed=tuple(cells))}


def _wrong(number, tolerance):
    return number.value + 1.1 * (tolerance + SE_FACTOR * number.se)


@pytest.mark.parametrize("row", GRADED)
def test_a_wrong_printed_number_turns_the_grade(row):
    """In every graded row: each clause by itself where the row holds or is undecided, all failing ones where it does not hold."""
    ours, clauses = quantities_of(row["quantities"]), parse(row["test"])
    failing = [clause for clause in clauses if clause.outcome(ours) is False]
    if row["grade"] == FAILS:
        turned = {clause: planted(clause, ours) for clause in failing}
        changed = {name: number for _, numbers in turned.values() for name, number in numbers.items()}
        assert grade(tuple(turned[c][0] if c in turned else c for c in clauses), {**ours, **changed}) != FAILS
        return
    for clause in clauses:
        if clause in failing:
            continue
        other, changed = planted(clause, ours)
        assert other.outcome({**ours, **changed}) is False
        turned = grade(tuple(other if c is clause else c for c in clauses), {**ours, **changed})
        undecided = any(c.sides is not None and c.outcome(ours) is None for c in clauses)
        if clause.sides is None and undecided:
            continue  # the row waits for its direction, whatever the number
        assert turned in ((FAILS,) if clause.sides is not None else (FAILS, DIRECTION_ONLY))
        assert turned != row["grade"] or failing  # "direction only" because of another number stays so


@pytest.mark.parametrize("name", sorted({item.command.partition("::")[2] for item in ITEMS if item.is_suite_test}))
def test_a_wrong_formula_fails_the_test_that_a_row_names(name, monkeypatch):
    test = getattr(test_algorithms, name)
    first = {mark.args[0]: next(iter(mark.args[1])) for mark in getattr(test, "pytestmark", [])}
    test(**first)
    monkeypatch.setattr(test_algorithms, "PLANTED", 2e-9)
    with pytest.raises(AssertionError):
        test(**first)


@pytest.mark.parametrize("row", NUMBERS)
def test_no_tolerance_is_wider_than_its_effect(row):
    ours = quantities_of(row["quantities"])
    for clause in parse(row["test"]):
        if clause.tolerance is not None:
            assert clause.tolerance < effect_of(clause, ours), clause.text
