"""The rows that every evaluation log is turned into."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truecal.errors import extra

CONFIDENCE_KEYS = ("confidence", "p_true", "p_correct", "stated_confidence", "prob", "probability", "max_prob")


@dataclass(frozen=True)
class Answer:
    """One answer to one question. `confidence` and `correct` are None where the log does not say."""

    question: str
    confidence: float | str | None
    correct: bool | None
    task: str = ""
    model: str = ""
    repeat: int = 0


@dataclass(frozen=True)
class EvalLog:
    """Answers, what kind of log they come from, and what the confidence is, in words."""

    kind: str
    confidence: str
    answers: tuple[Answer, ...]

    @property
    def repeated(self) -> bool:
        """Whether some question has several answers, which are then not independent."""
        return len({(answer.task, answer.question) for answer in self.answers}) < len(self.answers)

    def frame(self) -> Any:
        """One row per answer."""
        pl = extra("polars")
        columns: dict[str, Sequence[object]] = {
            "question": [f"{a.task}/{a.question}" if a.task else a.question for a in self.answers],
            "confidence": [a.confidence for a in self.answers],
            "correct": [None if a.correct is None else int(a.correct) for a in self.answers],
            "task": [a.task for a in self.answers],
            "model": [a.model for a in self.answers],
            "repeat": [a.repeat for a in self.answers],
        }
        return pl.DataFrame(columns, strict=False)

    def notes(self) -> tuple[str, ...]:
        """What was found missing, counted."""
        silent = sum(answer.confidence is None for answer in self.answers)
        unscored = sum(answer.correct is None for answer in self.answers)
        total = f"of {len(self.answers)} answers"
        return (
            *([f"{silent} {total} state no confidence"] if silent else []),
            *([f"{unscored} {total} have no score of right or wrong"] if unscored else []),
        )

    def describe(self) -> str:
        """What was read, in words."""
        questions = len({(answer.task, answer.question) for answer in self.answers})
        several = f", {questions} questions as clusters" if self.repeated else ""
        return f"{self.kind}: confidence {self.confidence}{several}"


def truth_of(value: object) -> bool | None:
    """Whether a score says right or wrong; None where it says neither.

    >>> truth_of("C"), truth_of("I"), truth_of(1.0), truth_of(0.5)
    (True, False, True, None)
    """
    if isinstance(value, str):
        word = value.strip().upper()
        if word in ("C", "CORRECT", "TRUE", "YES", "1", "1.0"):
            return True
        return False if word in ("I", "INCORRECT", "FALSE", "NO", "0", "0.0") else None
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    return None
