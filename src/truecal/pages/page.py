"""Pages as files: HTML as it is, or printed to PDF by a Chromium that is installed."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from truecal.errors import FileError
from truecal.pages.comparison import ComparisonContent, comparison_body
from truecal.pages.content import Content
from truecal.pages.html import asset, charting_bundle, document_of, inert
from truecal.pages.records import Absent, plain
from truecal.pages.sections import body
from truecal.pages.study import study_body
from truecal.pages.study_record import StudyContent
from truecal.pages.watch import WatchContent, watch_body
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# Pages as files: HTML as it is, or printed to PDF by a Chromium that is installed

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_SECONDS = 120
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--no-sandbox",  # the page is ours, and allows no script but its own
    "--no-pdf-header-footer",
    "--virtual-time-budget=10000",
)


def write_page(path: str | os.PathLike[str], render: Callable[[], str]) -> Path:
    """Write a page whole or not at all; the ending .pdf asks for paper. What cannot be written is refused before rendering."""
    target = Path(path)
    if target.suffix.lower() != ".pdf":
        return write_whole(target, render())
    browser = next((program for name in _BROWSERS if (program := shutil.which(name))), None)
    if browser is None:
        raise FileError(
            f"{target} asks for a PDF, which needs an installed Chromium or Chrome; write .html and print it from any browser"
        )
    return write_whole(target, _printed(browser, render()))


def _printed(browser: str, html: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        page, paper = Path(folder) / "page.html", Path(folder) / "page.pdf"
        page.write_text(html, encoding="utf-8")
        command = [browser, *_FLAGS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={paper}", page.as_uri()]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
            return paper.read_bytes()
        except (OSError, subprocess.SubprocessError) as error:
            raise FileError(f"{browser} could not print the page; write .html and print it from any browser") from error


# ----------------------------------------------------------------------------------------------------
# The page: words, tables, numbers, styles and scripts put into one file that needs nothing else and runs nothing else


def render(content: Content) -> str:
    """The HTML text of a report's content."""
    wanted = ("cells", "curves", "level", "most_bins", "n", "top_label", "head", "absolute")
    scripts = ("theme.js", "rates.js", "measure.js", "charts.js", "curves.js", "tables.js", "page.js")
    remedies = None if isinstance(content.recalibration, Absent | None) else content.recalibration.curves
    data = {**{name: getattr(content, name) for name in wanted}, "remedies": remedies}
    return _page(content.title, body(content), data, scripts)


def render_comparison(content: ComparisonContent) -> str:
    """The HTML text of a comparison's content."""
    data = {name: getattr(content, name) for name in ("models", "curves", "top_label", "abstention")}
    return _page(content.title, comparison_body(content), data, ("theme.js", "curves.js", "tables.js", "comparison.js"))


def render_study(content: StudyContent) -> str:
    """The HTML text of a study's content."""
    scripts = (
        "theme.js",
        "rates.js",
        "tables.js",
        "study_numbers.js",
        "study_charts.js",
        "study_glance.js",
        "study.js",
    )
    data = plain(asdict(content.explorer))
    return _page(content.title, study_body(content), data, scripts, styles=("page.css", "study.css"))


def render_watch(content: WatchContent) -> str:
    """The HTML text of the content of a watch."""
    # what the charts need; the words are in the HTML
    groups = [{**asdict(group), "step": None} for group in content.groups]
    data = {"groups": groups, "tolerance": content.tolerance, "outcome": content.outcome}
    return _page(content.title, watch_body(content), data, ("theme.js", "tables.js", "watch.js"))


def _page(
    title: str, html: str, data: Mapping[str, object], scripts: Sequence[str], *, styles: Sequence[str] = ("page.css",)
) -> str:
    """A page of words and of scripts that read `data`; everything else is in the HTML already."""
    library = charting_bundle()
    ours = inert("(() => {\n'use strict';\n" + "\n".join(map(asset, scripts)) + "\n})();")
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in (library, ours))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )
    numbers = f'<script type="application/json" id="content">{embedded(plain(data))}</script>'
    body = "\n".join([html, numbers, f"<script>{library}</script>", f"<script>{ours}</script>"])
    more = '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
    return document_of(title, "".join(map(asset, styles)), body, policy, more)


def embedded(value: Any) -> str:
    """JSON that can stand inside a script element whatever strings it holds.

    >>> embedded({"name": "</script>&\\u2028"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u0026\\\\u2028"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    for character in "<>&":  # the other dangerous ones, U+2028 and U+2029, are not ASCII and escaped already
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _digest(script: str) -> str:
    return b64encode(hashlib.sha256(script.encode()).digest()).decode()
