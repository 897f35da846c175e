"""Settings in pyproject.toml and truecal.toml."""

import json
import os

import pytest


@pytest.fixture
def project(tmp_path, monkeypatch, binary_csv):
    inner = tmp_path / "deep" / "inside"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return tmp_path


def test_options_come_from_the_nearest_file(truecal, project, binary_csv):
    (project / "pyproject.toml").write_text(
        '[tool.truecal]\nlevel = 0.9\n[tool.truecal.measure]\nmax-error = 0.9\nby = "site"\n'
    )
    ran = truecal("measure", binary_csv, "--json")
    content = json.loads(ran.out)
    assert (content["level"], content["conclusion"]["tolerance"]) == (0.9, 0.9)
    assert {result["group"] for result in content["results"]} == {"north", "south"}
    assert f"settings of {project / 'pyproject.toml'}: level = 0.9, max-error = 0.9" in ran.err
    assert json.loads(truecal("measure", binary_csv, "--json", "--level", "0.8").out)["level"] == 0.8


def test_truecal_toml_has_no_prefix(truecal, project, binary_csv):
    (project / "deep" / "truecal.toml").write_text("[measure]\nmax-error = 0.0\n")
    assert truecal("measure", binary_csv).code == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[measure]\nmax-eror = 0.02\n", "has no option 'max-eror'; did you mean 'max-error'?"),
        ("[mesure]\nmax-error = 0.02\n", "there is no verb 'mesure'; did you mean 'measure'?"),
        ("[measure\n", "cannot read the settings"),
        ("measure = 3\n", "must be a table"),
        ("[measure]\nmax-error = 'much'\n", "not a valid float"),
    ],
)
def test_what_is_misspelt_is_refused(truecal, project, binary_csv, text, words):
    (project / "truecal.toml").write_text(text)
    ran = truecal("measure", binary_csv)
    assert ran.code == 2
    assert words in ran.err


def test_settings_of_other_users_are_refused_unless_named(truecal, project, binary_csv):
    settings = project / "truecal.toml"
    settings.write_text("[measure]\nmax-error = 0.0\n")
    if os.geteuid():
        pytest.skip("only root can give files away")
    for foreign in (settings, project):
        os.chown(foreign, 12345, 12345)
        ran = truecal("measure", binary_csv)
        assert ran.code == 2
        assert f"{foreign} belongs to user 12345; use them by truecal --config {settings} ..." in ran.err
        assert truecal("--config", settings, "measure", binary_csv).code == 1
        assert truecal(f"--config={settings}", "measure", binary_csv).code == 1
        assert truecal("--config", os.devnull, "measure", binary_csv).code == 0
        os.chown(foreign, 0, 0)
    assert truecal("measure", binary_csv).code == 1
