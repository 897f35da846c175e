"""Files are written whole or not at all, whatever happens, and nothing is replaced that is not a regular file of the user's."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from truecal.errors import FileError
from truecal.writing import check_output, locked, write_folder, write_whole

STAGES = ("opened", "written", "synced", "renamed")
KILLED = """
import os, signal, sys
import truecal.writing as writing
writing._reached = lambda stage: os.kill(os.getpid(), signal.SIGKILL) if stage == sys.argv[2] else None
writing.write_whole(sys.argv[1], "new" * 100_000)
"""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions and signals of POSIX")


@pytest.mark.parametrize("stage", STAGES)
def test_killed_inside_a_write(processes, tmp_path, stage):
    target = tmp_path / "out.json"
    target.write_text("old")
    ran = processes.python(KILLED, target, stage)
    assert ran.returncode == -signal.SIGKILL
    assert target.read_text() == ("new" * 100_000 if stage == "renamed" else "old")
    write_whole(target, "again")
    assert target.read_text() == "again"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]  # what the killed writer left is collected


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_an_interrupt_leaves_no_trace(tmp_path, monkeypatch, stage):
    def interrupt(now):
        if now == stage:
            raise KeyboardInterrupt

    monkeypatch.setattr("truecal.writing._reached", interrupt)
    target = tmp_path / "out.json"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_whole(target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert target.read_text() == "old"


def test_a_full_disk(processes, tmp_path):
    """A limit on the size of files stands in for the end of the disk."""
    code = """
import resource, signal, sys
import truecal as tc
from truecal.writing import write_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_whole(sys.argv[1], "x" * 100_000)
except tc.errors.FileError as error:
    print(error)
"""
    target = tmp_path / "out"
    target.write_text("old")
    ran = processes.python(code, target)
    assert "cannot write" in ran.stdout
    assert "too large" in ran.stdout
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_read_only_folder(tmp_path):
    if os.geteuid() == 0:
        target = "/proc/truecal-test"  # root may write anywhere but here
    else:
        tmp_path.chmod(0o500)
        target = tmp_path / "out"
    with pytest.raises(FileError, match="cannot write"):
        write_whole(target, "x")


def test_two_writers(tmp_path):
    target = tmp_path / "out"
    contents = [str(i) * 50_000 for i in range(8)]
    observed = set()

    def write(content):
        for _ in range(20):
            write_whole(target, content)
            observed.add(target.read_text())

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert observed <= set(contents)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_permissions_are_kept(tmp_path):
    target = tmp_path / "out"
    target.write_text("old")
    target.chmod(0o640)
    write_whole(target, "new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_new_files_obey_the_umask_which_stays_as_it_is(processes, tmp_path, monkeypatch):
    monkeypatch.setattr("os.umask", None)  # never called
    code = "import os, sys; os.umask(0o027); from truecal.writing import write_whole; write_whole(sys.argv[1], 'x')"
    assert processes.python(code, tmp_path / "out").returncode == 0
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640
    write_whole(tmp_path / "other", "x")


def test_a_link_is_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    assert write_whole(link, "new") == link
    assert link.is_symlink()
    assert target.read_text() == "new"
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "made")
    write_whole(dangling, "new")
    assert (tmp_path / "made").read_text() == "new"


def test_what_is_not_replaced(tmp_path):
    socket, read_only = tmp_path / "socket", tmp_path / "read-only"
    os.mknod(socket, stat.S_IFSOCK | 0o600)
    read_only.write_text("old")
    read_only.chmod(0o400)
    for path, why in (
        (socket, "not a regular file.*- for standard output"),
        (read_only, "read-only"),
        (tmp_path, "directory"),
        (tmp_path / "missing" / "out", "No such file"),
        (tmp_path / "nul\0", "cannot write"),
        (tmp_path / ("long" * 100), "cannot write"),
        ("", "empty"),
    ):
        with pytest.raises(FileError, match=why):
            write_whole(path, "new")
        with pytest.raises(FileError, match=why):
            check_output(path)
    assert read_only.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_devices_and_pipes_are_written_to(processes):
    assert write_whole("/dev/null", "x") == Path("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    check_output("/dev/null")
    code = "import sys, numpy as np, truecal.writing as w; w.write_whole('/dev/stdout', lambda f: np.savez(f, a=[1]))"
    ran = processes.python(code, text=False)
    assert ran.stdout.startswith(b"PK")


def test_a_pipe_is_written_to(tmp_path):
    fifo, read = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    write_whole(fifo, "through the pipe")
    reader.join()
    assert read == ["through the pipe"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_hard_link_is_replaced_alone(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("old")
    other.hardlink_to(one)
    write_whole(one, "new")
    assert (one.read_text(), other.read_text()) == ("new", "old")


def test_temporary_files_of_living_writers_stay(tmp_path):
    def write_others(file):
        write_whole(tmp_path / "inner", "x")
        file.write(b"outer")

    write_whole(tmp_path / "outer", write_others)
    assert (tmp_path / "outer").read_text() == "outer"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner", "outer"]


def test_an_input_is_not_overwritten_under_any_name(tmp_path):
    data, link, hard, fresh = (tmp_path / name for name in ("x.csv", "link.csv", "hard.csv", "new.csv"))
    data.write_text("y,p\n")
    link.symlink_to(data)
    hard.hardlink_to(data)
    for out in (data, link, hard, tmp_path / "." / "x.csv"):
        for source in (data, link, tmp_path, tmp_path / "*.csv"):
            with pytest.raises(FileError, match="the command reads it"):
                check_output(out, [source])
    with pytest.raises(FileError, match="the command reads it"):
        check_output(fresh, [fresh])  # a state that is not there yet
    check_output(fresh, [data, tmp_path, "s3://bucket/x.csv", ""])
    check_output(tmp_path / "page.html", [tmp_path])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hard.csv", "link.csv", "x.csv"]


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "day" / "groups"

    def write(names):
        return lambda folder: [write_whole(folder / name, name) for name in names]

    nested = lambda folder: ((folder / "g=a").mkdir(), write_whole(folder / "g=a" / "sketch.npz", "new"))  # noqa: E731
    write_folder(target, write(["sketch.npz"]), "sketch.npz")
    write_folder(target, nested, "sketch.npz")
    assert [str(path.relative_to(target)) for path in sorted(target.rglob("*"))] == ["g=a", "g=a/sketch.npz"]
    (target / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match=r"it holds notes\.txt"):
        write_folder(target, write(["sketch.npz"]), "sketch.npz")
    with pytest.raises(FileError, match="it is a file"):
        write_folder(target / "notes.txt", write(["sketch.npz"]), "sketch.npz")
    assert [path.name for path in target.parent.iterdir()] == ["groups"]


FOLDER_KILLED = """
import os, signal, sys
import truecal.writing as writing
writing._reached = lambda stage: os.kill(os.getpid(), signal.SIGKILL) if stage == sys.argv[2] else None
def write(folder):
    for name in "bc":
        (folder / name).mkdir()
        (folder / name / "sketch.npz").write_text("new")
writing.write_folder(sys.argv[1], write, "sketch.npz")
"""


@pytest.mark.parametrize("stage", ["synced", "renamed"])
def test_killed_inside_a_folder(processes, tmp_path, stage):
    target = tmp_path / "groups"
    (target / "a").mkdir(parents=True)
    (target / "a" / "sketch.npz").write_text("old")
    ran = processes.python(FOLDER_KILLED, target, stage)
    assert ran.returncode == -signal.SIGKILL
    assert sorted(path.name for path in target.iterdir()) == (["b", "c"] if stage == "renamed" else ["a"])
    write_whole(tmp_path / "other", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups", "other"]


ADD_ONE = """
import sys, time
from pathlib import Path
from truecal.writing import locked, write_whole
path = Path(sys.argv[1])
for _ in range(20):
    with locked(path), locked(path):
        count = int(path.read_text()) if path.exists() else 0
        time.sleep(0.001)
        write_whole(path, str(count + 1))
"""


def test_locked_changes_are_never_lost(processes, tmp_path):
    path = tmp_path / "count"
    running = [processes.start(sys.executable, "-c", ADD_ONE, path) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert path.read_text() == "60"
    assert [file.name for file in tmp_path.iterdir()] == ["count"]


def test_a_lock_ends_with_its_process(processes, tmp_path):
    path = tmp_path / "state"
    code = (
        "import sys, time; from truecal.writing import locked\n"
        "with locked(sys.argv[1]): print('locked', flush=True); time.sleep(60)"
    )
    running = processes.start(sys.executable, "-c", code, path, stdout=subprocess.PIPE)
    assert running.stdout.readline() == b"locked\n"
    with pytest.raises(FileError, match=f"state is in use by process {running.pid}"), locked(path, seconds=0.1):
        pass
    running.kill()
    running.wait()
    assert (tmp_path / ".state.lock").exists()  # left by the killed process, and taken over
    with locked(path, seconds=0.1):
        pass
    assert not list(tmp_path.iterdir())
