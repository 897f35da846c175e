"""The page of the example study, drawn from its numbers when the documentation is built. A hook of mkdocs.yml.

`python docs/example_page.py STORE` keeps the numbers of a store that `truecal study example` made.
"""

import json
import sys
from pathlib import Path
from typing import Any

NUMBERS = Path(__file__).with_name("example-study.json")


def on_files(files: Any, config: Any) -> Any:
    """Put the page among the files of the site."""
    from mkdocs.structure.files import File

    from truecal.pages.page import render_study
    from truecal.pages.study_record import StudyContent

    html = render_study(StudyContent.of_record(json.loads(NUMBERS.read_text(encoding="utf-8"))))
    files.append(File.generated(config, "example-study-page.html", content=html))
    return files


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
