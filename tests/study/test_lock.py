"""A lock is held by one process, names it, and is free when it is closed."""

import os

import pytest

from truecal.study.lock import HeldError, hold


def test_the_second_is_told_who_holds_it(tmp_path):
    handle = hold(tmp_path / "lock", wait=False)
    with pytest.raises(HeldError) as refused:
        hold(tmp_path / "lock", wait=False)
    assert refused.value.holder == str(os.getpid())
    os.close(handle)
    os.close(hold(tmp_path / "lock", wait=True))
    assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_a_file_that_cannot_be_made_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        hold(tmp_path / "nowhere" / "lock", wait=False)
