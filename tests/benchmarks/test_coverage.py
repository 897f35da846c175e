"""The coverage atlas: its cells, cache, tables, page and command; and, reduced, that every statement reaches what it states."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest

from benchmarks.coverage import atlas, peers
from benchmarks.coverage.__main__ import main
from benchmarks.coverage.atlas import AtlasCell, coverage_atlas
from benchmarks.coverage.peers import Peer, peer_limits, peer_statements
from benchmarks.coverage.statements import STATEMENTS, Statement, Trials
from benchmarks.coverage.tables import END, START, atlas_page, cell_table, lines, markdown, summary, write_into
from benchmarks.coverage.worlds import ClassWorld, Decades, atlas_worlds, class_worlds
from tests.simulations import FULL
from truecal.errors import FileError, InputError
from truecal.lab import PAPER_WORLDS, Run, Uniform, World
from truecal.profile import Profile

MINE = {"calibrated": {"uniform": World(Uniform())}}
FAST = STATEMENTS[:2]


def shortfalls(cells, chance=0.001):
    """Cells that miss what their statement states, by a one-sided binomial test at `chance`."""
    lowest = {statement.name: statement.least for statement in STATEMENTS}
    sides = {"interval": "less", "test": "greater", "promise": "greater"}

    def p_value(cell):
        limit = lowest.get(cell.statement, cell.stated)
        return binomtest(round(cell.rate * cell.m), cell.m, limit, alternative=sides[cell.kind]).pvalue

    return [cell for cell in cells if p_value(cell) < chance]


def _always(world, n, m, rng):
    return Trials.of_limits(np.zeros(m), np.ones(m), 0.3)


def _never(world, n, m, rng):
    return Trials.of_limits(np.full(m, 0.8), np.ones(m), 0.3)


def _alarm(world, n, m, rng):
    return Trials.of_verdicts(np.arange(m) % 2 == 0)


def _silent(world, n, m, rng):
    return None


JUDGED = [
    Statement("always", "interval", 0.9, _always),
    Statement("never", "interval", 0.9, _never, share=0.5),
    Statement("alarm", "test", 0.05, _alarm),
    Statement("silent", "promise", 0.05, _silent),
]


def test_cell_rates_count_misses_on_both_sides():
    sure, wrong, alarm = coverage_atlas(n=[50], m=8, statements=JUDGED, worlds=MINE)
    assert (sure.rate, sure.length, sure.m, sure.truth) == (1.0, 1.0, 8, 0.3)
    assert (wrong.rate, wrong.above, wrong.below, wrong.m) == (0.0, 1.0, 0.0, 4)
    assert (alarm.rate, alarm.kind) == (0.5, "test")
    assert sure.standard_error > 0


def test_sizes_outside_the_range_of_a_statement_are_skipped():
    small = Statement("small", "interval", 0.9, _always, most_rows=60, least_rows=40)
    assert [cell.n for cell in coverage_atlas(n=[30, 50, 90], m=2, statements=[small], worlds=MINE)] == [50]


def test_worlds_have_their_true_errors():
    groups = atlas_worlds()
    assert sum(len(worlds) for worlds in groups.values()) == 50
    assert all(world.true_error() < 1e-8 for world in groups["papers, recalibrated"].values())
    assert all(abs(world.true_error() - 0.02) < 1e-6 for world in groups["papers, nearly calibrated"].values())
    assert sum(len(worlds) for worlds in class_worlds().values()) == 8


def test_decades_expectation_matches_closed_form():
    assert Decades(6).expectation(lambda c, rest: rest) == pytest.approx((1 - 1e-6) / (6 * np.log(10)), rel=1e-9)
    c, rest = Decades(6).from_uniforms(np.array([[0.0, 0.5]]))
    np.testing.assert_allclose(rest, [1, 1e-3])
    assert (c + rest == 1).all()


def test_class_world_labels_follow_rates():
    outputs, labels, rates = ClassWorld(4, exponent=0.5).draw(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(outputs.sum(axis=1), 1)
    counts = np.bincount(labels, minlength=4) / 20_000
    np.testing.assert_allclose(counts, rates.mean(axis=0), atol=0.015)
    with pytest.raises(InputError, match="ClassWorld"):
        ClassWorld(1)


def test_cells_are_the_same_alone_in_processes_and_from_cache(tmp_path, monkeypatch):
    whole = coverage_atlas(n=[60], m=3, statements=FAST)
    assert len(whole) == 100
    assert coverage_atlas(n=[60], m=3, statements=FAST[:1], run=Run(workers=2)) == whole[:50]
    cached = Run(cache=tmp_path / "cells")
    assert coverage_atlas(n=[60], m=3, statements=FAST[:1], run=cached) == whole[:50]

    def refuse(worlds, job):
        raise AssertionError(f"{job} was in the cache")

    monkeypatch.setattr(atlas, "judge_cell", refuse)
    steps = []
    again = coverage_atlas(n=[60], m=3, statements=FAST[:1], run=Run(cache=tmp_path / "cells", progress=steps.append))
    assert again == whole[:50]
    assert (steps[0].done, steps[0].total) == (50, 50)


@pytest.mark.parametrize(
    "wrong",
    [
        {"m": 0},
        {"n": []},
        {"n": [1]},
        {"rng": -1},
        {"statements": []},
        {"worlds": MINE, "run": Run(workers=2)},
        {"worlds": MINE, "run": Run(cache="x")},
        {"statements": JUDGED, "run": Run(cache="x")},
    ],
)
def test_atlas_refuses_bad_input(wrong):
    with pytest.raises(InputError):
        coverage_atlas(**wrong)


def test_tables_show_mean_worst_world_and_datasets(tmp_path):
    cells = coverage_atlas(n=[50, 60], m=4, statements=[JUDGED[0], JUDGED[2]], worlds=MINE)
    assert [(line.statement, line.n, line.worst) for line in lines(cells)] == [
        ("always", 50, 1.0),
        ("always", 60, 1.0),
        ("alarm", 50, 0.5),
        ("alarm", 60, 0.5),
    ]
    text = markdown(cells)
    assert "| always | 1.00 (1.00 calibrated), 1.000 [4] | 1.00 (1.00 calibrated), 1.000 [4] |" in text
    assert "| alarm | 0.50 (0.50 calibrated) [4] | 0.50 (0.50 calibrated) [4] |" in text
    assert len(summary(cells)) == len(cell_table(cells)) == 4
    page = tmp_path / "page.md"
    page.write_text(f"before\n{START}\nold\n{END}\nafter\n")
    write_into(page, cells, "python -m benchmarks.coverage")
    written = page.read_text()
    assert written.startswith("before\n")
    assert written.endswith("\nafter\n")
    assert "old" not in written
    assert text in written
    page.write_text("no marks")
    with pytest.raises(FileError, match="no lines"):
        write_into(page, cells, "truecal")


def test_worst_is_a_group_where_worlds_have_few_datasets():
    def cell(group, world, rate, m):
        return AtlasCell("d", "interval", 0.9, group, world, 50, m, 0.1, rate, 0.0, 1 - rate, 0.2)

    few = [cell("a", "x", 0.5, 4), cell("a", "y", 1.0, 12), cell("b", "z", 0.8, 4)]
    (line,) = lines(few)
    assert (line.worst, line.where) == (0.8, "b")  # of a: 0.875
    (line,) = lines([cell("a", "x", 0.5, 30), cell("a", "y", 1.0, 30)])
    assert (line.worst, line.where) == (0.5, "a: x")
    assert "(0.50 x)" in markdown([cell("a", "x", 0.5, 30)])


def test_page_colours_shortfalls_and_loads_nothing():
    cells = coverage_atlas(n=[50], m=40, statements=JUDGED[:3], worlds=MINE)
    html = atlas_page(cells)
    assert html.count('<td class="bad"') == 2
    assert html.count('<td class="over"') == 1
    assert "http" not in html
    assert "<script" not in html


def test_shortfalls_are_detected():
    cells = coverage_atlas(n=[50], m=40, statements=JUDGED[:3], worlds=MINE)
    assert [cell.statement for cell in shortfalls(cells)] == ["never", "alarm"]


# ------------------------------------------------------------------------------------------------ the statements themselves

_PLACES = (("papers", "resnet110_c10"), ("papers, recalibrated", "resnet152_imgnet"), ("others", "kink"))
_REDUCED = {group: {name: atlas_worlds()[group][name]} for group, name in _PLACES}
_CLASSES = {group: {"10 classes": worlds["10 classes"]} for group, worlds in class_worlds().items()}
_SMALLER = {atlas_worlds: _REDUCED, class_worlds: _CLASSES}


@pytest.mark.slow
@pytest.mark.parametrize("statement", [s for s in STATEMENTS if s.name != "sweep"], ids=lambda s: s.name)
def test_statement_reaches_what_it_states(statement):
    """10 datasets and more (all: 20) of 300 or 1000 rows in each of two or three worlds, together: a binomial test at 0.1 %."""
    worlds = _SMALLER.get(statement.worlds)
    cells = coverage_atlas(
        n=[max(300, statement.least_rows)],
        m=round((20 if FULL else 10) / min(statement.share, 0.3)),
        statements=[statement],
        worlds=worlds,
    )
    m = sum(cell.m for cell in cells)
    rate = sum(cell.rate * cell.m for cell in cells) / m
    both = AtlasCell(statement.name, statement.kind, statement.stated, "all", "all", 0, m, 0.0, rate, 0.0, 0.0, 0.0)
    assert not shortfalls([both]), f"{rate:.3f} of {m}"


# ------------------------------------------------------------------------------------------------ peers


def test_peers_are_seeded_and_restore_the_global_state():
    def random_interval(c, y, level):
        low = np.random.random()  # noqa: NPY002
        return low, low + level

    profile = Profile.from_arrays(*PAPER_WORLDS["resnet110_c10"].draw(30, 3))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    low, high = peer_limits(random_interval, profile, 0.9)
    np.testing.assert_array_equal(low, peer_limits(random_interval, profile, 0.9)[0])
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert len(set(low)) == 3
    np.testing.assert_allclose(high - low, 0.9)


def test_absent_peers_are_named():
    local_peer = Peer("numpy", "numpy", "an interval", 1, lambda c, y, level: (0.0, 1.0), 5)
    gone = Peer("nobody", "no_such_module", "another", 2, lambda c, y, level: (0.0, 1.0), 5)
    statements, absent = peer_statements([local_peer, gone, gone])
    assert [(statement.name, statement.most_rows) for statement in statements] == [("an interval", 1000)]
    assert absent == ["nobody"]
    (cell,) = coverage_atlas(n=[50], m=20, statements=statements, worlds=MINE)
    assert (cell.rate, cell.m) == (1.0, 5)


@pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: peer.name)
def test_installed_peer_gives_an_interval(peer):
    pytest.importorskip(peer.module)
    profile = Profile.from_arrays(*PAPER_WORLDS["resnet110_c100"].draw(100, 1))
    low, high = peer_limits(peer.interval, profile, 0.9)
    assert low.shape == (1,)
    assert low[0] < high[0]


# ------------------------------------------------------------------------------------------------ the command

TINY = ("--statement", "default", "--n", 50, "--m", 2, "--workers", 1)


def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_command_prints_lines_and_writes_table_and_page(tmp_path):
    document, page = tmp_path / "coverage.md", tmp_path / "atlas.html"
    document.write_text(f"{START}\n{END}\n")
    code, out, err = run(*TINY, "--table", document, "--page", page)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split()[:4] == ["statement", "kind", "stated", "n"]
    assert len(out.splitlines()) == 2
    assert 'python -m benchmarks.coverage --quick --m 2 --n 50 --statement "default"`' in document.read_text()
    assert page.read_text().count("<tr>") == 51


def test_command_writes_json_with_a_row_per_world(tmp_path):
    path = tmp_path / "atlas.json"
    code, out, _ = run(*TINY, "--json", "--out", path)
    content = json.loads(path.read_text())
    assert (code, out) == (0, "")
    assert (content["n"], content["m"], len(content["rows"])) == ([50], 2, 50)
    assert {"statement", "world", "rate", "rate_se", "length"} <= set(content["rows"][0])


def test_command_names_absent_peers(monkeypatch):
    gone = Peer("nobody", "no_such_module", "another", 2, lambda c, y, level: (0.0, 1.0), 5)
    monkeypatch.setattr(peers.peer_statements, "__defaults__", ((gone,),))
    code, _, err = run(*TINY, "--peers")
    assert code == 0
    assert err == "not installed, left out: nobody\n"


def test_command_help_and_bad_options(tmp_path):
    code, out, _ = run("--help")
    assert code == 0
    assert "--peers" in out
    for wrong in (("--n", 1), ("--statement", "x"), ("--m", 0), ("--workers", 0), ("--seed", -1), ("--what",)):
        code, out, err = run(*wrong)
        assert (code, out) == (2, "")
        assert "Error: " in err
    code, _, err = run(*TINY, "--table", tmp_path / "absent.md")
    assert code == 2
    assert "absent.md" in err


def test_documentation_has_the_marks():
    text = (Path(__file__).parents[2] / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert START in text
    assert END in text
