"""Columns that form no groups, files that are not what they say, YAML that cannot be: exit 2, never a mistake in truecal."""

import sys

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import binary_frame

PROCESS = "import sys; from truecal.cli.main import main; sys.exit(main(sys.argv[1:]))"


def refused(ran, *words):
    assert ran.code == 2, ran.err
    assert "mistake in truecal" not in ran.err
    for word in words:
        assert word in ran.err, ran.err


@pytest.mark.parametrize(
    ("values", "kind"), [([{"a": 1}], "ndarray"), ([b"\xff\x00"], "bytes"), ([[1]], "ndarray"), ([b"a"], "bytes")]
)
def test_nested_and_binary_columns_form_no_groups(truecal, tmp_path, values, kind):
    path = tmp_path / "a.parquet"
    binary_frame(40).with_columns(pl.Series("odd", values * 40)).write_parquet(path)
    ran = truecal("measure", path, "--by", "odd")
    refused(ran, "odd")
    assert kind in ran.err or "shape" in ran.err


def test_groups_whose_names_hold_commas_stay_apart(truecal, tmp_path):
    path = tmp_path / "a.csv"
    frame = binary_frame(200).with_columns(a=pl.Series(["x, y", "x"] * 100), b=pl.Series(["z", "y, z"] * 100))
    frame.write_csv(path)
    ran = truecal("measure", path, "--by", "a", "--by", "b", "--combine", "--format", "line")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 2


def test_missing_values_are_a_group_of_their_own_beside_the_word(truecal, tmp_path):
    path = tmp_path / "a.parquet"
    binary_frame(300).with_columns(a=pl.Series([None, "missing", "x"] * 100)).write_parquet(path)
    ran = truecal("measure", path, "--by", "a", "--format", "line")
    assert [line.partition(":")[0].split()[-1] for line in ran.out.splitlines()] == ["'missing'", "x", "missing"]


def test_grouping_by_the_label(truecal, tmp_path):
    path = tmp_path / "rn.csv"
    binary_frame(200).select(pl.col("y").alias("label"), "p").write_csv(path)
    ran = truecal("measure", path, "--by", "label", "--format", "line")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deep.json", b"[" * 100_000),
        ("deep.jsonl", b'{"a":' * 100_000),
        ("digits.json", b'[{"y": 1, "p": ' + b"1" * 100_000 + b"}]"),
        ("digits.csv", b"y,p\n1," + b"1" * 100_000 + b"\n"),
        ("nothing", b""),
        ("bytes", bytes(range(256))),
        ("zip", b"PK\x03\x04abc"),
        ("zip.npz", b"PK\x03\x04abc"),
        ("header.npy.npz", b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535),
    ],
)
def test_files_that_are_not_what_they_say(truecal, tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    ran = truecal("measure", path)
    refused(ran, name)
    assert len(ran.err) < 2000


@pytest.mark.parametrize(
    "text",
    [
        "2020-99-99",
        "name: 2020-99-99",
        "name: \0",
        "name: " + "9" * 5000,
        "name: " + "[" * 5000,
        "{" * 3000,
        "- " * 5000,
        "a: &a [*a, *a]",
        "!!python/object/apply:os.system [ls]",
        "name: !!timestamp 2020-99-99",
    ],
)
def test_yaml_that_cannot_be(truecal, tmp_path, text):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    refused(truecal("study", "run", path, "--store", tmp_path / "store"), "s.yaml")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("stdout", [">&-", ">/dev/full", "| true"])
def test_an_answer_that_nobody_can_read(processes, tmp_path, stdout):
    """Exit 2, not the 1 of a failed gate, and no traceback."""
    path = tmp_path / "a.csv"
    binary_frame(40).write_csv(path)
    command = f'set -o pipefail; {sys.executable} -c "{PROCESS}" measure {path} --max-error 0.9 {stdout}'
    ran = processes.run("bash", "-c", command)
    assert "mistake" not in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.returncode in ((2,) if stdout != "| true" else (0, 2))


def test_many_columns_are_asked_together(monkeypatch):
    import truecal as tc
    from truecal.predictions import frames

    results = []
    monkeypatch.setattr(frames, "refuse_missing_values", lambda column, name, **_: results.append(name))
    probs = np.random.default_rng(0).dirichlet(np.ones(3000), 2)
    frame = pl.DataFrame({"y": [0, 1], **{f"p_{k}": probs[:, k] for k in range(3000)}})
    assert tc.Predictions.from_frame(frame, label="y", probs="p_*").class_count == 3000
    assert results == ["y"]


def test_a_null_among_many_columns_is_named():
    import truecal as tc

    frame = pl.DataFrame({"y": [0, 1], "p_0": [0.5, 0.2], "p_1": [0.5, None]})
    with pytest.raises(tc.InputError, match=r"'p_1' has 1 missing value, the first in row 1"):
        tc.Predictions.from_frame(frame, label="y", probs="p_*")
