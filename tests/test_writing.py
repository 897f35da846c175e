"""Files are written whole or not at all, whatever happens, and nothing is replaced that is not a regular file of the user's."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from truecal.errors import FileError
from truecal.writing import write_whole

STAGES = ("opened", "written", "synced", "renamed")
KILLED = """
import os, signal, sys
import truecal.writing as writing
writing._reached = lambda stage: os.kill(os.getpid(), signal.SIGKILL) if stage == sys.argv[2] else None
writing.write_whole(sys.argv[1], "new" * 100_000)
"""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions and signals of POSIX")


@pytest.mark.parametrize("stage", STAGES)
def test_killed_inside_a_write(tmp_path, stage):
    target = tmp_path / "out.json"
    target.write_text("old")
    ran = subprocess.run([sys.executable, "-c", KILLED, target, stage], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert target.read_text() == ("new" * 100_000 if stage == "renamed" else "old")
    write_whole(target, "again")
    assert target.read_text() == "again"


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


def test_a_full_disk(tmp_path):
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
    ran = subprocess.run([sys.executable, "-c", code, target], capture_output=True, text=True, check=True)
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
    seen = set()

    def write(content):
        for _ in range(20):
            write_whole(target, content)
            seen.add(target.read_text())

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen <= set(contents)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_permissions_are_kept(tmp_path):
    target = tmp_path / "out"
    target.write_text("old")
    target.chmod(0o640)
    write_whole(target, "new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_new_files_obey_the_umask_which_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("os.umask", None)  # never called
    code = "import os, sys; os.umask(0o027); from truecal.writing import write_whole; write_whole(sys.argv[1], 'x')"
    subprocess.run([sys.executable, "-c", code, tmp_path / "out"], check=True)
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
    fifo, one, other, locked = (tmp_path / name for name in ("fifo", "one", "other", "locked"))
    os.mkfifo(fifo)
    one.write_text("old")
    other.hardlink_to(one)
    locked.write_text("old")
    locked.chmod(0o400)
    for path, why in (
        (fifo, "not a regular file"),
        ("/dev/null", "not a regular file.*- for standard output"),
        (one, "another name"),
        (locked, "read-only"),
        (tmp_path, "directory"),
        (tmp_path / "missing" / "out", "No such file"),
        (tmp_path / "nul\0", "cannot write"),
        (tmp_path / ("long" * 100), "cannot write"),
        ("", "empty"),
    ):
        with pytest.raises(FileError, match=why):
            write_whole(path, "new")
    assert one.read_text() == locked.read_text() == "old"
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert len(list(tmp_path.iterdir())) == 4
