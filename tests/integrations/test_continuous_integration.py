"""The GitHub Action and the pre-commit hook: their commands, run in bash as a runner would."""

import os
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import binary_frame

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def runner(processes, tmp_path):
    """A folder with predictions, and a `truecal` on the path."""
    binary_frame(n=2000).write_csv(tmp_path / "preds.csv")
    binary_frame(n=2000, seed=1).write_csv(tmp_path / "new.csv")
    command = tmp_path / "bin" / "truecal"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m truecal.cli.main "$@"\n')
    command.chmod(0o755)

    def run(script: str, **environment: str) -> tuple[int, str, str]:
        summary = tmp_path / "summary.md"
        summary.write_text("")
        reference = {"PATH": f"{command.parent}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(summary)}
        bash = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
        ran = processes.run(*bash, env=reference | environment, cwd=tmp_path)
        return ran.returncode, ran.stdout, summary.read_text()

    return run


def judging(**inputs: str) -> tuple[str, dict[str, str]]:
    """The step that judges, and its environment for given inputs."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    values = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()} | inputs
    environment = {
        key: values[text.removeprefix("${{ inputs.").removesuffix(" }}")] for key, text in step["env"].items()
    }
    assert "${{" not in step["run"]  # inputs never become part of the script
    return step["run"], environment


def test_the_action_passes_fails_and_summarises(runner):
    script, environment = judging(files="preds.csv", **{"max-error": "0.5"}, options="--by site")
    code, out, summary = runner(script, **environment)
    assert code == 0
    assert "::notice title=truecal measure%3A north::PASS" in out
    assert "| north |" in summary
    code, out, summary = runner(script, **(environment | {"MAX_ERROR": "0.01"}))
    assert code == 1
    assert "::error title=truecal measure%3A north::FAIL" in out
    assert "**FAIL" in summary


def test_the_action_compares_releases(runner):
    script, environment = judging(verb="compare", files="preds.csv new.csv", **{"max-increase": "0.3"})
    code, out, _ = runner(script, **(environment | {"OPTIONS": "--unpaired --resamples 99"}))
    assert code == 0, out


def test_an_input_is_never_run(runner, tmp_path):
    script, environment = judging(files="$(touch hacked)", options="; touch hacked")
    assert runner(script, **environment)[0] == 2
    assert not (tmp_path / "hacked").exists()


def test_the_hook_is_a_command_that_gates(runner):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert runner(f"{hook['entry']} preds.csv --max-error 0.5")[0] == 0
    assert runner(f"{hook['entry']} preds.csv --max-error 0.01")[0] == 1
