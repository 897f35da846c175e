"""`truecal report`: where the page goes and what it is made of."""

import hashlib
import re


def test_the_file_hash_is_that_of_sha256sum(truecal, binary_csv, tmp_path):
    out = tmp_path / "page.html"
    assert truecal("report", binary_csv, "--fast", "--out", out).code == 0
    digest = hashlib.sha256(binary_csv.read_bytes()).hexdigest()
    assert re.search(rf"File binary\.csv</dt><dd>SHA-256 {digest}", out.read_text())


def test_bands(truecal, binary_csv, tmp_path):
    out = tmp_path / "page.html"
    assert truecal("report", binary_csv, "--fast", "--bands", "low=0:0.1,high=0.1:1", "--out", out).code == 0
    page = out.read_text()
    assert "Confidence in words" in page
    assert all(re.search(rf">\s*{word}\s*<", page) for word in ("low", "high"))
    assert truecal("report", binary_csv, "--bands", "low", "--out", out).code == 2


def test_several_columns_are_all_grouped_by(truecal, binary_csv, tmp_path):
    out = tmp_path / "page.html"
    assert truecal("report", binary_csv, "--fast", "--by", "site", "--by", "w", "--out", out).code == 0
    assert all(f"Calibration by {column}" in out.read_text() for column in ("site", "w"))
    text = truecal("measure", binary_csv, "--by", "site", "--by", "w").out
    assert [line.split()[0] for line in text.splitlines() if "rank-series" in line] == ["north", "south", "1", "2"]
    text = truecal("measure", binary_csv, "--by", "site", "--by", "w", "--combine").out
    assert all(f"{site}, {w}" in text for site in ("north", "south") for w in (1, 2))


def test_grouping_by_the_label_itself(truecal, binary_csv):
    ran = truecal("measure", binary_csv, "--by", "y", "-q")
    assert ran.code == 0
    assert "given its label even a calibrated model is off" in ran.out
    assert "by chance" not in ran.out
    assert "by chance" in truecal("measure", binary_csv, "--by", "site", "-q").out
    assert [line.split()[0] for line in ran.out.splitlines()[1:3]] == ["0", "1"]
