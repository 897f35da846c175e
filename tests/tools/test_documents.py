"""The guide for contributors, the architecture page and the decisions say what is there."""

import re

import pytest

from tests.tools.test_layers import ROOT, real_folders
from tools import mutants, weight

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))


def test_the_map_names_every_folder_and_no_other():
    rows = MAP.partition("| folder |")[2].partition("\n\n")[0].splitlines()[2:]
    named = {name for row in rows for name in re.findall(r"`([a-z]+)`", row.split("|")[1])}
    assert named == real_folders()


def test_the_table_of_weights_is_that_of_the_tree():
    """Within 3 %; `python -m tools.weight` renews it."""
    stated = weight.table(MAP)
    assert len(stated) > 12
    assert weight.counted(list(stated), weight.lines_by_folder()) == pytest.approx(stated, rel=0.03)


def test_lines_of_code_are_counted_without_docstrings_comments_and_blanks(tmp_path):
    (tmp_path / "src/truecal/groups").mkdir(parents=True)
    (tmp_path / "src/truecal/groups/cells.py").write_text(
        '"""Two\nlines."""\n\n# why\nx = """a\nb"""  # c\n\n\ndef f():\n    "Doc."\n'
    )
    (tmp_path / "src/truecal/watch.py").write_text("y = 1\n")
    (tmp_path / "src/truecal/__init__.py").write_text("z = 1\n")
    counts = weight.lines_by_folder(tmp_path)
    assert counts == {"groups": 3, "watch": 1, "": 1}
    rows = ["groups/, watch.py", "the rest", "all"]
    assert weight.counted(rows, counts) == {"groups/, watch.py": 4, "the rest": 1, "all": 5}


def test_what_the_guide_calls_make_has():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"make ([a-z]+)", GUIDE)) - {"all"} <= targets


def test_the_tests_that_make_names_exist():
    paths = re.findall(r"\btests/[\w/.-]+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert "tests/estimators" in paths
    # data is no part of the repository
    assert not [path for path in paths if "/data" not in path and not (ROOT / path).exists()]


def test_files_and_tests_of_mutants_exist():
    paths = [ROOT / test for _, tests in mutants.GROUPS.values() for test in tests]
    paths += [ROOT / "src" / "truecal" / file for files, _ in mutants.GROUPS.values() for file in files]
    assert not [path for path in paths if not path.exists()]


def test_files_that_the_guide_names_exist():
    for path in re.findall(r"`((?:src|tests|docs|tools)/[\w/.-]+\.\w+)`", GUIDE):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem[:4])
def test_decisions_are_numbered_dated_and_name_alternatives(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {int(path.stem[:4])}. ")
    assert re.search(r"^Date: \d{4}-\d\d-\d\d · Status: (proposed|accepted|superseded)", text, flags=re.M)
    assert "## Decision" in text
    assert len(text.partition("## Alternatives")[2].strip()) > 20
    assert f"]({path.name})" in (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")


def test_decision_numbers_are_unique_and_listed_in_order():
    """A number of a deleted record is not given again, so gaps are allowed."""
    names = [path.name for path in DECISIONS]
    assert len({name[:4] for name in names}) == len(names)
    index = (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", index) == names


def test_the_documentation_works_from_files():
    """Search without a server, a logo that opens the first page, tables of output that keep their columns."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "use_directory_urls: false" in settings
    assert re.search(r"^  - offline\b", settings, re.MULTILINE)
    assert "polyfills: [iframe-worker.js]" in settings  # else the search asks the network for one
    assert (ROOT / "docs" / "iframe-worker.js").is_file()
    assert re.search(r"^nav:\n  - Home: index.md", settings, re.MULTILINE)  # a page inside a section is no home page
    style = (ROOT / "docs" / "site.css").read_text(encoding="utf-8")
    assert re.search(r"pre > code \{ white-space: pre;", style)


def test_the_reference_is_split_by_topic_and_leaves_nothing_large_out():
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md")}
    assert len(pages) >= 8
    assert all(text.count("\n:::") <= 36 for text in pages.values())
    for name in ("Scan", "Sketch", "Accumulator", "CalibrationMetric"):
        assert re.search(rf"^::: truecal\.[\w.]+\.{name}$", pages["scale.md"], re.MULTILINE)
    for name in pages.keys() - {"index.md"}:
        assert f"]({name})" in pages["index.md"]


def test_lines_of_the_changelog_are_short_sentences_said_once():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = re.findall(r"^- (.*(?:\n  .*)*)", text, flags=re.MULTILINE)
    assert len(entries) == len(set(entries)) > 20
    assert not [entry for entry in entries if not re.fullmatch(r"[A-Z][a-z]+ .{1,110}\.", entry)]


def test_the_coverage_that_the_readme_states_is_that_of_the_atlas():
    atlas = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    sizes, cells = (
        re.search(pattern, atlas, flags=re.MULTILINE)[0].split("|")[2:-1]
        for pattern in (r"^\| statement \|.*$", r"^\| default \|.*$")
    )
    of_size = {
        size.strip(): re.match(r" ([\d.]+) \(([\d.]+) .*\[400\]", cell).groups()
        for size, cell in zip(sizes, cells, strict=True)
    }
    (hundred, worst_of_hundred), (thousand, worst_of_thousand) = of_size["n = 100"], of_size["n = 1,000"]
    assert hundred == thousand
    assert f"{float(hundred):.0%}".replace("%", " % of the datasets on average, at n = 100 and at n = 1,000") in README
    assert (
        f"in the worst world in {float(worst_of_hundred) * 100:.0f} % and {float(worst_of_thousand) * 100:.0f} %"
        in README
    )


def test_the_times_that_the_readme_states_are_those_of_the_benchmarks():
    """Within a factor of 1.5, so that a run on another processor need not change the page."""
    speed = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")

    def of(what: str, column: int) -> float:
        return float(re.search(rf"^\| {re.escape(what)} \|.*$", speed, flags=re.MULTILINE)[0].split("|")[column])

    said = re.search(r"takes ([\d.]+) ms for 100,000 rows and ([\d.]+) s for ten million;", README)
    times = [1000 * of("default call, n = 1e+05, sorts as it is", 2), of("default call, n = 1e+07, sorts as it is", 2)]
    assert [float(number) / time for number, time in zip(said.groups(), times, strict=True)] == pytest.approx(
        [1, 1], abs=0.5
    )
    said = re.search(r"three other packages (\d+) to (\d+) times longer", README)
    ratios = [of("model-diagnostics", 3), of("uncertainty-calibration", 3)]
    assert [float(number) / ratio for number, ratio in zip(said.groups(), ratios, strict=True)] == pytest.approx(
        [1, 1], abs=0.5
    )
