"""Prepare the pages in build/docs, then build the site from them.

The generator sees plain Markdown: examples are code with outputs as comments, formulas are MathML, pictures and the
live reports are files. Everything that is particular to us happens here, so that another generator can be taken.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from tools.site import gallery
from tools.site.examples import with_copyable_examples
from tools.site.formulas import with_formulas

SOURCE = Path("docs")
STAGED = Path("build/docs")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.py", "*.json")


def stage() -> None:
    """Write what the generator reads."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(SOURCE, STAGED, ignore=_LEFT_OUT)
    for page in sorted(STAGED.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        page.write_text(with_formulas(with_copyable_examples(text, str(page))), encoding="utf-8")
    gallery.write(STAGED)


def main() -> int:
    """Stage and build; the exit code is the generator's."""
    stage()
    shutil.rmtree("site", ignore_errors=True)
    return subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
