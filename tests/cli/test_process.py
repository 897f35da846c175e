"""`truecal` as a process: help, completion, pipes, missing packages, and what starting costs."""

import os
import pty
import subprocess
import sys

import pytest

from truecal.cli.verbs import VERBS


@pytest.mark.parametrize("verb", [*VERBS, "recalibrate fit", "recalibrate apply"])
def test_every_verb_helps(truecal, verb):
    ran = truecal(*verb.split(), "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: truecal {verb}")
    assert ran.err == ""


def test_help_lists_the_verbs_and_loads_nothing_heavy(processes):
    code = "import sys; from truecal.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    ran = processes.python(code)
    assert all(f"\n  {verb} " in ran.stdout for verb in VERBS)
    loaded = set(ran.stderr.split())
    assert not loaded & {"numpy", "scipy", "polars", "sklearn", "matplotlib", "rich"}
    # what starting costs is what is loaded: the group, its words and its messages, but no verb
    assert len([name for name in loaded if name.startswith("truecal")]) <= 12


def test_version(truecal):
    ran = truecal("--version")
    assert ran.code == 0
    assert ran.out.startswith("truecal ")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "npz"])
def test_standard_input(processes, tmp_path, kind):
    import numpy as np

    from tests.cli.conftest import binary_frame

    frame, path = binary_frame(), tmp_path / f"preds.{kind}"
    if kind == "npz":
        np.savez(path, y=frame["y"].to_numpy(), p=frame["p"].to_numpy())
    else:
        getattr(frame, {"csv": "write_csv", "jsonl": "write_ndjson", "parquet": "write_parquet"}[kind])(path)
    ran = processes.truecal("measure", "-", stdin=path.read_bytes(), text=False)
    assert ran.returncode == 0, ran.stderr
    assert b"from standard input" in ran.stderr
    assert b"n = 400" in ran.stdout


def test_empty_standard_input(processes):
    ran = processes.truecal("measure", "-", stdin="")
    assert ran.returncode == 2
    assert ran.stderr == "truecal: standard input is empty\n"


def test_a_closed_pipe_is_one_line(processes, binary_csv):
    shell = f"{sys.executable} -m truecal.cli.main measure {binary_csv} --json -q | true; echo ${{PIPESTATUS[0]}}"
    for _ in range(3):
        ran = processes.run("bash", "-c", shell)
        assert "Traceback" not in ran.stderr
        assert len(ran.stderr.splitlines()) <= 1
        if ran.stdout.strip() == "2":
            assert "broken pipe" in ran.stderr
            return
    pytest.fail(f"the pipe was never closed in time: {ran.stdout}")


def test_without_click_the_remedy_is_named(processes):
    code = "import sys; sys.modules['click'] = None; from truecal.cli.main import main; sys.exit(main(['measure']))"
    ran = processes.python(code)
    assert ran.returncode == 2
    assert ran.stderr.startswith("truecal: this needs click and rich; install it with: pip install 'truecal[cli]'")


def test_without_polars_the_remedy_is_named(processes, binary_csv):
    call = f"sys.exit(main(['measure', {str(binary_csv)!r}]))"
    code = f"import sys; sys.modules['polars'] = None; from truecal.cli.main import main; {call}"
    ran = processes.python(code)
    assert ran.returncode == 2
    assert "pip install 'truecal[files]'" in ran.stderr


def test_without_scikit_learn_the_remedy_is_named(processes, binary_csv):
    call = f"sys.exit(main(['recalibrate', 'fit', {str(binary_csv)!r}, '-q']))"
    code = f"import sys; sys.modules['sklearn'] = None; from truecal.cli.main import main; {call}"
    ran = processes.python(code)
    assert ran.returncode == 2
    assert ran.stderr.startswith("truecal: this needs scikit-learn; install it with: pip install 'truecal[sklearn]'")


def test_progress_shows_on_a_terminal_only(processes, binary_csv):
    parent, child = pty.openpty()
    command = (sys.executable, "-m", "truecal.cli.main", "measure", binary_csv, "-q")
    process = processes.start(*command, stdout=subprocess.PIPE, stderr=child)
    out, _ = process.communicate()
    os.close(child)
    drawn = os.read(parent, 100_000).decode()
    os.close(parent)
    assert "measuring" in drawn
    assert b"measuring" not in out
    assert processes.truecal("measure", binary_csv, "-q").stderr == ""


def test_the_shell_completes(processes):
    environment = {"_TRUECAL_COMPLETE": "bash_complete", "COMP_WORDS": "truecal mea", "COMP_CWORD": "1"}
    ran = processes.truecal(env=environment)
    assert ran.stdout.split(",")[-1].strip() == "measure"


@pytest.mark.parametrize(
    "words", ["truecal measure pre", "truecal report a.csv --out pre", "truecal compare a.csv pre"]
)
def test_the_shell_completes_file_names(processes, words):
    environment = {
        "_TRUECAL_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    assert processes.truecal(env=environment).stdout.strip() == "file,pre"  # which makes the shell offer its files


def test_without_docstrings_there_are_no_options_and_the_command_says_so(processes):
    ran = processes.run(sys.executable, "-OO", "-m", "truecal.cli.main", "measure", "--help")
    assert ran.returncode == 2
    assert "without -OO" in ran.stderr
