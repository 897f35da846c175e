"""The notebooks of the documentation run from the first cell to the last, offline."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch, capsys):
    for package in ("sklearn", "polars", "matplotlib"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    variables = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "commit notebooks without outputs"
            exec(compile("".join(cell["source"]), path.name, "exec"), variables)
    assert "calibration error" in capsys.readouterr().out
