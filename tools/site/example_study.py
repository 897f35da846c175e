"""Draw the page of the example study from its numbers.

`python -m tools.site.example_study STORE` keeps the numbers of a store that `truecal study example` made.
"""

import json
import sys
from pathlib import Path

NUMBERS = Path("docs/example-study.json")


def write(folder: Path) -> None:
    """Write the page beside the others."""
    from truecal.pages.study import StudyPage

    html = StudyPage.from_record(json.loads(NUMBERS.read_text(encoding="utf-8"))).html()
    (folder / "example-study-page.html").write_text(html, encoding="utf-8")


def keep(store: str) -> None:
    """Write the numbers that the page of a store shows."""
    from truecal.pages.study import gather_study
    from truecal.study import Store
    from truecal.writing import write_whole

    command = "truecal study page store --megabytes 1.5"
    content = gather_study(Store(store), title=None, megabytes=1.5, command=command)
    write_whole(NUMBERS, json.dumps(content.record(), separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    keep(sys.argv[1])
