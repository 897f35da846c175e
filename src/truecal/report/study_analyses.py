"""The analyses of a study as sections of its page: a few words, notes and a table each."""

from typing import Any


def analyses(frame: Any) -> list[dict[str, Any]]:
    return []
