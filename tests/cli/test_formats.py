"""The answer of a gate for the programs that read it."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import binary_frame


@pytest.fixture
def grouped_csv(tmp_path):
    """Two sites: one calibrated, one far off."""
    rng = np.random.default_rng(0)
    p, site = rng.random(2000), np.repeat(["good|site", "bad"], 1000)
    y = rng.random(2000) < np.where(site == "bad", p**4, p)
    path = tmp_path / "sites.csv"
    pl.DataFrame({"y": y.astype(int), "p": p, "site": site}).write_csv(path)
    return path


def test_one_line_per_group_with_its_verdict(truecal, grouped_csv):
    ran = truecal("measure", grouped_csv, "--by", "site", "--max-error", "0.2", "--format", "line", "-q")
    assert ran.code == 1
    first, second, together = ran.out.splitlines()
    assert first.startswith("FAIL bad: root-mean-square calibration error 0.321 [")
    assert second.startswith("PASS good|site: ")
    assert together.startswith("FAIL all together: at 95% the error is above 0.2 in 1 of 2 groups, most in bad")


def test_the_worst_group_is_named_on_fail(truecal, grouped_csv):
    ran = truecal("measure", grouped_csv, "--by", "site", "--max-error", "0.2", "-q")
    assert "in 1 of 2 groups, most in bad (at least 0.2" in ran.out.splitlines()[-1]
    gate = json.loads(truecal("measure", grouped_csv, "--by", "site", "--max-error", "0.2", "--json").out)["conclusion"]
    assert (gate["worst_group"], gate["passed"]) == ("bad", False)


def test_a_group_that_may_be_above_is_not_said_to_be(truecal, grouped_csv):
    """The calibrated site cannot be shown to be below 0.01 with 1000 rows, which is not an error above 0.01."""
    ran = truecal("measure", grouped_csv, "--by", "site", "--max-error", "0.01", "-q")
    assert ran.code == 1
    last = ran.out.splitlines()[-1]
    assert "the error is above 0.01 in 1 of 2 groups, most in bad" in last
    assert "; it may be in 1 more; " in last


def test_markdown_is_a_table(truecal, grouped_csv):
    out = truecal("measure", grouped_csv, "--by", "site", "--max-error", "0.2", "--format", "markdown", "-q").out
    lines = out.splitlines()
    assert lines[0].startswith("|  | error | low | high |")
    assert [line.split(" | ")[-1] for line in lines[2:4]] == ["FAIL |", "PASS |"]
    assert "good\\|site" in lines[3]
    assert "**FAIL: " in out


def test_github_annotations(truecal, grouped_csv):
    out = truecal("measure", grouped_csv, "--by", "site", "--max-error", "0.2", "--format", "github", "-q").out
    assert "::error title=truecal measure%3A bad::FAIL root-mean-square" in out
    assert "::notice title=truecal measure%3A good|site::PASS" in out
    assert "at 95%25" in out


def test_junit_is_xml_with_a_failure(truecal, grouped_csv):
    ran = truecal("measure", grouped_csv, "--by", "site", "--max-error", "0.2", "--format", "junit", "-q")
    suite = ET.fromstring(ran.out)
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    cases = {case.get("name"): case for case in suite}
    assert cases["bad"].find("failure") is not None
    assert cases["good|site"].find("failure") is None


def test_prometheus_gauges(truecal, grouped_csv):
    out = truecal("measure", grouped_csv, "--by", "site", "--max-error", "0.2", "--format", "prometheus", "-q").out
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in out.splitlines() if line[0] != "#"}
    errors = {key: value for key, value in values.items() if key.startswith("truecal_measure_error{")}
    assert len(errors) == 2
    passed = {key: value for key, value in values.items() if key.startswith("truecal_measure_gate_passed")}
    assert sorted(passed.values()) == [0.0, 0.0, 1.0]  # two groups, and both together
    assert any('group="bad"' in key and value == 0 for key, value in passed.items())


def test_every_format_agrees_with_the_json(truecal, binary_csv):
    (result,) = json.loads(truecal("measure", binary_csv, "--json").out)["results"]
    for form in ("text", "line", "markdown", "github", "junit"):
        assert f"{result['value']:.3f}"[:-1] in truecal("measure", binary_csv, "--format", form, "-q").out
    assert repr(result["value"]) in truecal("measure", binary_csv, "--format", "prometheus", "-q").out
    assert truecal("measure", binary_csv, "--format", "json").out == truecal("measure", binary_csv, "--json").out
    assert truecal("measure", binary_csv, "--json", "--format", "line").code == 2


@pytest.mark.parametrize("form", ["line", "markdown", "github", "junit", "json", "prometheus"])
def test_verify_and_compare_answer_in_every_format(truecal, binary_csv, tmp_path, form):
    ran = truecal("verify", binary_csv, "--format", form, "-q")
    assert ran.code == 1
    assert ran.out
    other = tmp_path / "other.csv"
    frame = binary_frame()
    frame.with_columns(pl.col("p") ** 2).write_csv(other)
    ran = truecal("compare", binary_csv, other, "--format", form, "-q", "--resamples", "99")
    assert ran.code == 0
    assert ran.out


def test_terminal_escapes_in_values_do_not_reach_the_terminal(truecal, tmp_path):
    path = tmp_path / "a.csv"
    rng = np.random.default_rng(0)
    names = np.array(["\x1b[31mred", "plain"])[rng.integers(0, 2, 200)]
    pl.DataFrame({"y": rng.integers(0, 2, 200), "p": rng.random(200), "site": names}).write_csv(path)
    for form in ("text", "line", "markdown"):
        assert "\x1b" not in truecal("measure", path, "--by", "site", "--format", form, "-q").out
    assert "\x1b" not in truecal("measure", path, "--score", "\x1b[31mp").err


def test_out_dash_is_standard_output(truecal, binary_csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert truecal("measure", binary_csv, "--out", "-", "-q").out.startswith("root-mean-square")
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("option", ["--max-error", "--level"])
def test_nan_is_no_threshold(truecal, binary_csv, option):
    assert truecal("measure", binary_csv, option, "nan").code == 2


def test_the_gate_adds_the_sketch_error(truecal, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    pl.DataFrame({"y": (rng.random(20_000) < p).astype(int), "p": p}).write_parquet(tmp_path / "a.parquet")
    content = json.loads(
        truecal("measure", tmp_path / "a.parquet", "--engine", "polars", "--max-error", "0.5", "--json").out
    )
    (result,) = content["results"]
    assert result["sketch_error"] > 0
    assert content["conclusion"]["high"] == result["interval"]["high"] + result["sketch_error"]
    between = (content["conclusion"]["high"] + result["interval"]["high"]) / 2
    assert truecal("measure", tmp_path / "a.parquet", "--engine", "polars", "--max-error", between).code == 1
