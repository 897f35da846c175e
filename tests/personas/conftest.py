"""A shell for people who have read the README: lines as they type them, in a folder with their files."""

import glob
import shlex

import pytest

from truecal.cli.main import main


class Shell:
    """Runs `truecal ...` lines; keeps what was said."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, line: str, code: int = 0) -> str:
        """Run a line, check its exit code, and return what it printed (messages of a refusal too)."""
        program, *words = shlex.split(line)
        assert program == "truecal"
        expanded = [
            f for word in words for f in (sorted(glob.glob(word)) if "*" in word and glob.glob(word) else [word])
        ]
        result = main(expanded)
        captured = self.capsys.readouterr()
        assert result == code, f"{line}: exit {result}, not {code}\n{captured.out}{captured.err}"
        return captured.out if code != 2 else captured.err


@pytest.fixture
def shell(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)
