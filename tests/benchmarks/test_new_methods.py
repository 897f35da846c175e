"""The simulations of judges, decisions and several labels per row: cells run, and the table lists them."""

import json
from pathlib import Path

import pytest

from benchmarks import new_methods


@pytest.mark.parametrize(("kind", "cell"), [("judge", 0), ("decision", 0), ("difference", 0), ("multilabel", 0)])
def test_a_cell_has_a_coverage(kind, cell):
    compute, cells = new_methods.CELLS[kind]
    numbers = compute(*cells[cell], 2)
    assert 0 <= numbers["coverage"] <= 1


def test_the_table_lists_the_recorded_cells():
    path = Path(new_methods.__file__).with_suffix(".jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    text = "\n".join(new_methods.markdown(records))
    assert "## judge" in text
    assert "100/1000" in text


def test_recorded_intervals_with_a_judge_cover():
    path = Path(new_methods.__file__).with_suffix(".jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    selected = [record for record in records if record["kind"] == "judge"]
    assert min(record["coverage"] for record in selected) >= 0.85
    assert 0.88 <= sum(record["coverage"] for record in selected) / len(selected) <= 0.96


def test_recorded_bands_of_decision_losses_cover():
    path = Path(new_methods.__file__).with_suffix(".jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    selected = [record for record in records if record["kind"] == "decision"]
    for size in {record["size"] for record in selected}:
        coverage = [record["coverage"] for record in selected if record["size"] == size]
        assert 0.93 <= sum(coverage) / len(coverage) <= 0.97
        assert min(coverage) >= 0.86  # steps with 5,000 rows, 0.875 of 200 datasets
        assert min(record["coverage"] for record in selected if record["true"] < 1e-9) >= 0.93
