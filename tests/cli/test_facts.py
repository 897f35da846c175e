"""One conclusion, many renderings: every format states the same facts, and every verb answers in JSON."""

import json
import re
import xml.etree.ElementTree as ET

import click
import numpy as np
import polars as pl
import pytest

import truecal as tc
from truecal.cli.main import VERBS, _group

FORMATS = ("text", "line", "markdown", "github", "junit", "prometheus", "json")
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def regions_csv(tmp_path_factory):
    """Three regions: one within 0.1, one far outside, one too small to tell."""
    region = np.repeat(["EU", "US", "APAC"], [3000, 3000, 80])
    p = RNG.random(len(region))
    y = RNG.random(len(region)) < np.where(region == "EU", p**3, p)
    path = tmp_path_factory.mktemp("facts") / "regions.csv"
    pl.DataFrame({"y": y.astype(int), "p": p, "region": region}).write_csv(path)
    return path


def verdicts(out, form):
    """What a rendering says of each group: name -> (value to three digits, whether it passed)."""
    if form == "json":
        document = json.loads(out)
        return {r["group"]: (round(r["value"], 3), r["interval"]["high"] <= 0.1) for r in document["results"]}
    if form == "text":
        rows = [line.split() for line in out.splitlines() if "rank-series" in line]
        return {row[0]: (float(row[3]), float(row[5]) <= 0.1) for row in rows}
    if form == "line":
        found = re.findall(r"^(PASS|FAIL) (\w+): root-mean-square calibration error (\S+)", out, re.M)
        return {name: (float(value), word == "PASS") for word, name, value in found}
    if form == "markdown":
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("|")]
        return {row[0]: (round(float(row[1]), 3), row[-1] == "PASS") for row in rows[2:]}
    if form == "github":
        found = re.findall(r"title=truecal measure%3A (\w+)::(PASS|FAIL) root-mean-square calibration error (\S+)", out)
        return {name: (float(value), word == "PASS") for name, word, value in found}
    if form == "junit":
        cases = ET.fromstring(out.replace('<?xml version="1.0" encoding="UTF-8"?>', "")).findall("testcase")
        texts = {case.get("name"): (case.findtext("system-out"), case.find("failure") is None) for case in cases}
        return {name: (float(re.search(r"error (\S+)", text)[1]), passed) for name, (text, passed) in texts.items()}
    values = re.findall(r'^truecal_measure_(error|gate_passed)\{.*group="(\w+)"\} (\S+)', out, re.M)
    names = dict.fromkeys(name for _, name, _ in values)
    table = {(kind, name): float(value) for kind, name, value in values}
    return {name: (round(table["error", name], 3), table["gate_passed", name] == 1) for name in names}


def test_every_format_states_the_same_values_and_verdicts(truecal, regions_csv):
    command = ("measure", regions_csv, "--by", "region", "--max-error", "0.1", "-q")
    outs = {form: truecal(*command, "--format", form) for form in FORMATS}
    assert {ran.code for ran in outs.values()} == {1}
    expected = verdicts(outs["json"].out, "json")
    assert {name: passed for name, (_, passed) in expected.items()} == {"EU": False, "US": True, "APAC": False}
    for form, ran in outs.items():
        assert verdicts(ran.out, form) == expected, form
    conclusion = json.loads(outs["json"].out)["conclusion"]
    gate = conclusion["gate"]
    assert gate == outs["text"].out.splitlines()[-1]
    assert f"**{gate}**" in outs["markdown"].out
    assert "most in EU" in gate
    assert (conclusion["worst_group"], json.loads(outs["json"].out)["gate"]["worst"]) == ("EU", "EU")
    assert conclusion["groups_outside"] == ["EU"]


def test_python_and_pytest_reach_the_verdict_of_the_command_line(truecal, regions_csv):
    preds = tc.read(regions_csv)
    for allowed in (0.02, 0.1, 0.2, 0.5):
        ran = truecal("measure", regions_csv, "--max-error", allowed, "--json", "-q")
        conclusion = tc.inference.conclude(tc.measure(preds), tolerance=allowed)
        document = json.loads(ran.out)
        assert document["conclusion"]["verdict"] == conclusion.verdict
        assert document["conclusion"]["sentence"] == conclusion.sentence
        assert document["gate"]["passed"] == conclusion.passed == (ran.code == 0)


@pytest.mark.parametrize("form", FORMATS)
def test_verify_never_passes_and_fails_at_once(truecal, regions_csv, form):
    ran = truecal("verify", regions_csv, "--select", "region=US", "--max-error", "0.1", "--format", form, "-q")
    assert ran.code == 1
    if form != "prometheus":
        assert "--assume-smooth" in ran.out
        assert "--method scaling-binning" in ran.out
    if form == "text":
        assert ran.out.splitlines()[-1].startswith("FAIL: ")
    ran = truecal(
        *(
            "verify",
            regions_csv,
            "--select",
            "region=US",
            "--max-error",
            "0.1",
            "--assume-smooth",
            "--format",
            form,
            "-q",
        )
    )
    assert ran.code == 0
    assert "FAIL" not in ran.out


def commands(group=None, words=()):
    """Every command of the command line with its words."""
    group = group or _group()
    context = click.Context(group, resilient_parsing=True)
    for name in group.list_commands(context) if not words else group.commands:
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


def test_every_verb_answers_in_json():
    lacking = [
        " ".join(words) for words, command in commands() if not any("--json" in param.opts for param in command.params)
    ]
    assert lacking == []
    assert len(list(commands())) > len(VERBS)


def test_options_have_the_words_of_python():
    for words, command in commands():
        options = {opt for param in command.params for opt in param.opts}
        for option, second in (("--clusters", "--cluster"), ("--weights", "--weight"), ("--classes", "--class-names")):
            assert (option in options) == (second in options), words
