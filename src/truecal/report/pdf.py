"""Pages as files: HTML as it is, or printed to PDF by a Chromium that is installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from truecal.errors import FileError
from truecal.writing import write_whole

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
