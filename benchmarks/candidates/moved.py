"""List what differs between two records of tests/contract: python benchmarks/candidates/moved.py OLD.json NEW.json."""

import json
import sys
from pathlib import Path


def moved_answers(old: Path, new: Path) -> list[str]:
    """Compare two records; one line of Markdown for every number that moved by more than 1e-9."""
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (old, new))
    return [
        f"| {question} | {key} | {before[question][key]:.6g} | {value:.6g} |"
        for question, answers in sorted(after.items())
        for key, value in answers.items()
        if question in before and key in before[question] and abs(before[question][key] - value) > 1e-9
    ]


if __name__ == "__main__":
    print("\n".join(["| question | number | before | after |", "|---|---|---:|---:|"]))
    print("\n".join(moved_answers(*map(Path, sys.argv[1:3]))))
