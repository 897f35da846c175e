"""One conclusion, many renderings: every format states the same facts, and every verb answers in JSON."""

import json
import re
import xml.etree.ElementTree as ET
from html import unescape

import click
import numpy as np
import polars as pl
import pytest

import truecal as tc
from truecal.cli.verbs import VERBS
from truecal.cli.verbs import truecal as root
from truecal.integrations.pytest_plugin import Calibration

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


TOGETHER = "all together"  # the name of the gate over several statements


def sentences(out, form, verb):
    """What a rendering states: name -> (sentence, whether it passed); only the gate where a format has no sentences."""
    if form == "line":
        matches = re.findall(r"^(PASS|FAIL) (.+?): (.*)$", out, re.M)
        return {name: (sentence, word == "PASS") for word, name, sentence in matches}
    if form == "github":
        matches = re.findall(rf"^::(\w+) title=truecal {verb}%3A (.+?)::(PASS|FAIL) (.*)$", out, re.M)
        assert all((kind == "error") == (word == "FAIL") for kind, _, word, _ in matches)
        return {name.replace("%2C", ","): (text.replace("%25", "%"), word == "PASS") for _, name, word, text in matches}
    cases = ET.fromstring(out.replace('<?xml version="1.0" encoding="UTF-8"?>', "")).findall("testcase")
    return {case.get("name"): (case.findtext("system-out"), case.find("failure") is None) for case in cases}


@pytest.fixture(scope="module")
def files(tmp_path_factory, regions_csv):
    """Files of two models on the same rows, and of days of which the last is off."""
    folder = tmp_path_factory.mktemp("gates")
    rng = np.random.default_rng(1)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    pl.DataFrame({"y": y, "p": p}).write_csv(folder / "good.csv")
    pl.DataFrame({"y": y, "p": p**2}).write_csv(folder / "bad.csv")
    pl.DataFrame({"y": y, "p": p**1.01}).write_csv(folder / "near.csv")
    for day, off in (("2026-05-01", 1), ("2026-05-02", 3)):
        region = rng.choice(["EU", "US"], 2000)
        happened = rng.random(2000) < np.where(region == "EU", p**off, p)
        pl.DataFrame({"y": happened.astype(int), "p": p, "region": region}).write_csv(folder / f"{day}.csv")
    return {"regions": regions_csv, **{path.stem: path for path in folder.iterdir()}}


GATES = {
    "measure, groups": (["measure", "regions", "--by", "region", "--max-error", "0.1"], {"EU", "US", "APAC", TOGETHER}),
    "measure, fails": (["measure", "bad", "--max-error", "0.1"], {"bad.csv"}),
    "measure, passes": (["measure", "good", "--max-error", "0.1"], {"good.csv"}),
    "verify, fails": (["verify", "bad", "--max-error", "0.1"], {"bad.csv"}),
    "verify, passes": (["verify", "good", "--max-error", "0.1", "--assume-smooth"], {"good.csv"}),
    "compare, fails": (
        ["compare", "good", "bad", "near", "--max-increase", "0.02"],
        {"bad - good", "near - good", TOGETHER},
    ),
    "compare, passes": (["compare", "bad", "good", "--max-increase", "0.02"], {"good - bad"}),
    "watch, groups": (["watch", "show", "groups"], {"EU", "US", TOGETHER}),
    "watch, calm": (["watch", "show", "calm"], {"all rows"}),
}


@pytest.mark.parametrize("gate", GATES)
def test_every_format_renders_the_same_conclusion(truecal, files, tmp_path, gate):
    words, names = GATES[gate]
    verb, passes = words[0], gate.endswith(("passes", "calm"))
    states = {"groups": tmp_path / "groups.json", "calm": tmp_path / "calm.json"}
    if verb == "watch":
        truecal("watch", "update", states["groups"], files["2026-05-01"], files["2026-05-02"], "--by", "region", "-q")
        truecal("watch", "update", states["calm"], files["2026-05-01"], "-q")
    command = [{**files, **states}.get(word, word) for word in words]
    quiet = [] if verb == "watch" else ["-q"]
    outs = {form: truecal(*command, "--format", form, *quiet) for form in FORMATS}
    assert {form: ran.code for form, ran in outs.items()} == dict.fromkeys(FORMATS, 0 if passes else 1)
    conclusion = json.loads(outs["json"].out)["conclusion"]
    assert conclusion["passed"] is passes
    last = conclusion["gate"]
    assert outs["text"].out.splitlines()[-1] == last
    assert f"**{last}**" in outs["markdown"].out.replace("\\", "")
    stated = sentences(outs["line"].out, "line", verb)
    assert set(stated) == names
    total = TOGETHER if TOGETHER in names else next(iter(names))
    assert stated[total][1] is passes
    if verb != "watch" or len(names) > 1:
        assert stated[total][0].endswith(last.partition(": ")[2])
    for form in ("github", "junit"):
        assert sentences(outs[form].out, form, verb) == stated, form
    gauges = re.findall(rf"^truecal_{verb}_gate_passed(?:\{{.*\}})? (\d)$", outs["prometheus"].out, re.M)
    assert sorted(gauges) == sorted(str(int(passed)) for _, passed in stated.values())
    rows = [line for line in outs["markdown"].out.splitlines() if line.startswith("|")][2:]
    assert sorted(row.split("|")[-2].strip() == "PASS" for row in rows) == sorted(
        passed for name, (_, passed) in stated.items() if name != TOGETHER
    )
    assert last.startswith(("PASS", "NO ALARM") if passes else ("FAIL", "ALARM"))


@pytest.mark.parametrize("gate", ["measure, groups", "measure, fails", "measure, passes"])
def test_numbers_of_every_format_are_those_of_the_json(truecal, files, gate):
    words, _ = GATES[gate]
    command = [files.get(word, word) for word in words]
    outs = {form: truecal(*command, "--format", form, "-q").out for form in FORMATS}
    for result in json.loads(outs["json"])["results"]:
        drawn = f"{result['value']:.3f}"
        for form in ("text", "line", "github", "junit"):
            assert drawn in outs[form], form
        assert f"{round(result['value'], 4)}" in outs["markdown"]
        assert repr(result["value"]) in outs["prometheus"]
    if "groups" in gate:
        document = json.loads(outs["json"])
        assert document["conclusion"]["worst_group"] == "EU"
        assert document["conclusion"]["groups_outside"] == ["EU"]
        assert "most in EU" in document["conclusion"]["gate"]


def text_of(html, kind):
    """The words of an element of a class, as a browser shows them."""
    return unescape(re.search(rf'class="{kind}">(.*?)</p>', html)[1])


def test_pages_and_dossier_render_the_conclusion_of_the_command_line(truecal, files, tmp_path):
    page = tmp_path / "page.html"
    for name, tolerance in (("bad", 0.1), ("good", 0.1), ("good", 0.001)):
        ran = truecal("measure", files[name], "--max-error", tolerance, "--json", "-q")
        conclusion = json.loads(ran.out)["conclusion"]
        for options in (["--fast"], ["--dossier", "tripod-ai"]):
            truecal("report", files[name], "--tolerance", tolerance, "--out", page, "-q", *options)
            html = page.read_text()
            assert text_of(html, "badge") == conclusion["headline"]
            if not options[1:]:  # a dossier adds what its slope shows
                assert text_of(html, "finding") == conclusion["sentence"]
    for limit in (["--max-increase", "0.02"], []):
        ran = truecal("compare", files["good"], files["bad"], *limit, "--report", page, "--json", "-q")
        conclusion = json.loads(ran.out)["conclusion"]
        html = page.read_text()
        assert (text_of(html, "badge"), text_of(html, "finding")) == (conclusion["headline"], conclusion["sentence"])
        if limit:
            assert text_of(html, "reading") == f"{conclusion['gate']}."
    state = tmp_path / "state.json"
    ran = truecal("watch", "update", state, files["2026-05-01"], files["2026-05-02"], "--by", "region", "--json", "-q")
    truecal("watch", "report", state, "--out", page)
    conclusion, html = json.loads(ran.out)["conclusion"], page.read_text()
    assert (text_of(html, "badge"), text_of(html, "finding")) == (conclusion["headline"], conclusion["sentence"])
    assert "predicted too high" in conclusion["sentence"]
    assert "overconfident" not in ran.out


def test_python_and_pytest_reach_the_verdict_of_the_command_line(truecal, files):
    preds = tc.read(files["regions"])
    for allowed in (0.02, 0.1, 0.2, 0.5):
        ran = truecal("measure", files["regions"], "--max-error", allowed, "--json", "-q")
        conclusion = tc.inference.conclude(tc.measure(preds), tolerance=allowed)
        document = json.loads(ran.out)
        assert document["conclusion"]["verdict"] == conclusion.verdict
        assert document["conclusion"]["sentence"] == conclusion.sentence
        assert document["conclusion"]["passed"] == conclusion.passed == (ran.code == 0)
        check = Calibration(max_error=allowed, level=0.95).check
        if conclusion.passed:
            assert check(preds).n == len(preds)
        else:
            with pytest.raises(pytest.fail.Exception, match=re.escape(document["conclusion"]["gate"])):
                check(preds)


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
    group = group or root
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
