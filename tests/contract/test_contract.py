"""The answers of public calls, as they were recorded: a rewrite may change how they are computed, not what they are."""

import json

import pytest

from tests.contract.questions import ANSWERS, QUESTIONS

RECORDED = json.loads(ANSWERS.read_text(encoding="utf-8"))
DRAWN = 0.02  # how far a number that rests on redraws may move with another random stream


def test_every_question_has_a_recorded_answer():
    assert RECORDED.keys() == QUESTIONS.keys()


@pytest.mark.parametrize("name", QUESTIONS)
def test_answer_is_as_recorded(name):
    answer, recorded = QUESTIONS[name](), RECORDED[name]
    assert answer.keys() == recorded.keys()
    for key, value in recorded.items():
        tolerance = max(DRAWN, 0.3 * abs(value)) if key.endswith("~") else 1e-9
        assert answer[key] == pytest.approx(value, abs=tolerance), key
