"""The pictures of gallery.md and the report of the landing page, made by their own code when the documentation is built. A hook."""

import io
import re
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("gallery.md")
REPORT = "example-report.html"


def code_blocks() -> list[str]:
    """The Python of the page, in order."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)


def pictures() -> dict[str, str]:
    """Name -> SVG of every block that makes a display."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    space: dict[str, Any] = {}
    drawn = {}
    with mpl.rc_context({"svg.hashsalt": "gallery"}):
        for block in code_blocks():
            space.pop("display", None)
            exec(block, space)  # the page's own code
            if "display" in space:
                held = io.StringIO()
                space["display"].figure_.savefig(held, format="svg", bbox_inches="tight", metadata={"Date": None})
                drawn[f"gallery-{len(drawn) + 1}.svg"] = held.getvalue()
                plt.close("all")
    return drawn


def example_report() -> str:
    """The report of the gallery's model."""
    import truecal as tc

    space: dict[str, Any] = {}
    exec(code_blocks()[0], space)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / REPORT
        tc.report(space["preds"], path)
        return path.read_text(encoding="utf-8")


def on_files(files: Any, config: Any) -> Any:
    """Put pictures and report among the files of the site."""
    from mkdocs.structure.files import File

    for name, content in {**pictures(), REPORT: example_report()}.items():
        files.append(File.generated(config, name, content=content))
    return files
