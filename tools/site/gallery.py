"""Draw the pictures of gallery.md and the report of the landing page by the code that the page shows."""

import io
import re
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path("docs/gallery.md")
REPORT = "example-report.html"


def code_blocks() -> list[str]:
    """The Python of the page, in order."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)


def pictures() -> dict[str, str]:
    """Name -> SVG of every block that makes a display."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    variables: dict[str, Any] = {}
    svg_by_name: dict[str, str] = {}
    with mpl.rc_context({"svg.hashsalt": "gallery"}):
        for block in code_blocks():
            variables.pop("display", None)
            exec(block, variables)  # the page's own code
            if "display" in variables:
                picture = io.StringIO()
                variables["display"].figure_.savefig(
                    picture, format="svg", bbox_inches="tight", metadata={"Date": None}
                )
                svg_by_name[f"gallery-{len(svg_by_name) + 1}.svg"] = picture.getvalue()
                plt.close("all")
    return svg_by_name


def example_report() -> str:
    """The report of the gallery's model."""
    import truecal as tc

    variables: dict[str, Any] = {}
    exec(code_blocks()[0], variables)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / REPORT
        tc.report(variables["preds"], path)
        return path.read_text(encoding="utf-8")


def write(folder: Path) -> None:
    """Write pictures and report beside the pages."""
    for name, content in {**pictures(), REPORT: example_report()}.items():
        (folder / name).write_text(content, encoding="utf-8")
