"""The page: words, tables, numbers, styles and scripts put into one file that needs nothing else and runs nothing else.

A content security policy allows the two scripts of this page by their hashes and no other, and no network at all: a class name that
managed to look like a script could still not run.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from truecal.report.bundle import charting_bundle, inert
from truecal.report.comparison.content import ComparisonContent
from truecal.report.comparison.sections import comparison_body
from truecal.report.html import asset, document_of
from truecal.report.model.content import Content
from truecal.report.model.sections import body
from truecal.report.records import Absent, plain
from truecal.report.study.record import StudyContent
from truecal.report.study.sections import study_body
from truecal.report.watch.content import WatchContent
from truecal.report.watch.sections import watch_body


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
