"""The coverage map: its numbers, its command, and the intervals of other packages beside ours."""

import json
import sys

import numpy as np
import pytest

from truecal.cli.main import main
from truecal.errors import InputError
from truecal.lab import PAPER_WORLDS, Run, Uniform, World
from truecal.lab.trials import peer_intervals
from truecal.lab.trials.coverage_map import (
    CANDIDATES,
    Candidate,
    cell_table,
    coverage_map,
    map_worlds,
    markdown,
    summary,
)
from truecal.lab.trials.peer_intervals import Peer, PeerEnds, peer_candidates
from truecal.profile import Profile

FAST = CANDIDATES[:2]


def _always(profile, level):
    return np.zeros(profile.batch), np.ones(profile.batch)


def _above(profile, level):
    return np.full(profile.batch, 0.8), np.ones(profile.batch)


@pytest.fixture
def truecal(capsys, monkeypatch):
    """Run the command with two quick intervals."""
    monkeypatch.setattr(sys.modules["truecal.lab.trials.coverage_map"], "CANDIDATES", FAST)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_covered_and_missed_add_up_and_lengths_are_means():
    one = {"calibrated": {"uniform": World(Uniform())}}
    judged = [Candidate("always", 2, _always), Candidate("above", 1, _above, share=0.5)]
    sure, wrong = coverage_map(one, n=[50], m=8, candidates=judged)
    assert (sure.covered, sure.length, sure.m, sure.truth) == (1.0, 1.0, 8, 0.0)
    assert (wrong.covered, wrong.too_high, wrong.too_low, wrong.m) == (0.0, 1.0, 0.0, 4)
    assert wrong.length == pytest.approx(0.2)
    assert sure.standard_error > 0


def test_the_groups_have_ten_worlds_of_the_stated_errors():
    groups = map_worlds()
    assert all(len(worlds) == 10 for worlds in groups.values())
    assert all(world.true_error() < 1e-8 for world in groups["papers, recalibrated"].values())
    assert all(abs(world.true_error() - 0.02) < 1e-6 for world in groups["papers, nearly calibrated"].values())


def test_worlds_do_not_depend_on_each_other_nor_on_workers():
    whole = coverage_map(n=[60], m=3, candidates=FAST)
    assert coverage_map(n=[60], m=3, candidates=FAST, run=Run(workers=2)) == whole
    name = "resnet110_c10"
    alone = coverage_map({"papers": {name: PAPER_WORLDS[name]}}, n=[60], m=3, candidates=FAST)
    assert alone == [cell for cell in whole if (cell.group, cell.world) == ("papers", name)]
    assert coverage_map(n=[60], m=3, candidates=FAST, rng=1) != whole


def test_every_interval_answers_and_contains_its_world_at_times():
    one = {"papers": {"resnet110_c100": PAPER_WORLDS["resnet110_c100"]}}
    cells = coverage_map(one, n=[100], m=20)
    assert [cell.interval for cell in cells] == [candidate.name for candidate in CANDIDATES]
    assert [cell.m for cell in cells] == [20, 20, 4, 4, 1, 4]
    assert all(cell.covered > 0 and 0 < cell.length < 0.5 for cell in cells)


def test_an_interval_may_leave_out_large_datasets():
    one = {"calibrated": {"uniform": World(Uniform())}}
    judged = [*FAST, Candidate("small only", 2, _always, most_rows=60)]
    cells = coverage_map(one, n=[60, 90], m=2, candidates=judged)
    assert [cell.n for cell in cells if cell.interval == "small only"] == [60]
    last = markdown(cells).splitlines()[-1]
    assert last == "| small only | calibrated | 1.00 (1.00 uniform), 1.000 | - |"
    assert len(summary(cells)) == 5
    assert len(cell_table(cells)) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"m": 0},
        {"level": 1.0},
        {"n": []},
        {"n": [1]},
        {"rng": -1},
        {"candidates": []},
        {"groups": {"mine": {"uniform": World(Uniform())}}, "run": Run(workers=2)},
    ],
)
def test_bad_input_is_refused(wrong):
    with pytest.raises(InputError):
        coverage_map(**wrong)


def test_peers_are_seeded_and_leave_the_global_state_alone():
    def random_interval(c, y, level):
        low = np.random.random()  # noqa: NPY002
        return low, low + level

    profile = Profile.from_arrays(*PAPER_WORLDS["resnet110_c10"].draw(30, 3))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    ends = PeerEnds(random_interval)
    low, high = ends(profile, 0.9)
    np.testing.assert_array_equal(low, ends(profile, 0.9)[0])
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert len(set(low)) == 3
    np.testing.assert_allclose(high - low, 0.9)


def test_absent_peers_are_named():
    here = Peer("numpy", "numpy", "an interval", 1, lambda c, y, level: (0.0, 1.0), 5)
    gone = Peer("nobody", "no_such_module", "another", 2, lambda c, y, level: (0.0, 1.0), 5)
    found, absent = peer_candidates(10, [here, gone, gone])
    assert [(c.name, c.norm, c.share) for c in found] == [("an interval", 1, 0.5)]
    assert absent == ["nobody"]


@pytest.mark.parametrize("peer", peer_intervals.PEERS, ids=lambda peer: peer.name)
def test_an_installed_peer_gives_an_interval(peer):
    pytest.importorskip(peer.module)
    profile = Profile.from_arrays(*PAPER_WORLDS["resnet110_c100"].draw(100, 1))
    low, high = PeerEnds(peer.interval)(profile, 0.9)
    assert low.shape == (1,)
    assert low[0] < high[0]


TINY = ("lab", "coverage", "--n", 50, "--m", 1, "--workers", 1)


def test_the_command_prints_one_line_per_interval_group_and_n(truecal):
    code, out, err = truecal(*TINY)
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["interval", "worlds", "n", "datasets", "coverage", "lowest", "in", "length"]
    assert len(lines) == 1 + 4 * len(FAST)


def test_the_command_writes_json_with_a_row_per_world(truecal, tmp_path):
    path = tmp_path / "map.json"
    code, out, _ = truecal(*TINY, "--json", "--out", path)
    found = json.loads(path.read_text())
    assert (code, out) == (0, "")
    assert (found["level"], found["n"], found["m"]) == (0.9, [50], 1)
    assert len(found["rows"]) == 40 * len(FAST)
    assert {"interval", "world", "covered", "covered_se", "length"} <= set(found["rows"][0])


def test_the_command_says_which_peers_are_absent(truecal, monkeypatch):
    gone = Peer("nobody", "no_such_module", "another", 2, lambda c, y, level: (0.0, 1.0), 5)
    monkeypatch.setattr(peer_intervals.peer_candidates, "__defaults__", ((gone,),))
    code, _, err = truecal(*TINY, "--peers")
    assert code == 0
    assert err == "truecal: not installed, left out: nobody\n"


def test_help_and_bad_options(truecal):
    code, out, _ = truecal("lab", "coverage", "--help")
    assert code == 0
    assert "--peers" in out
    for wrong in (("--n", 1), ("--level", 2), ("--m", 0), ("--workers", 0), ("--seed", -1), ("--what",)):
        code, out, err = truecal("lab", "coverage", *wrong)
        assert (code, out) == (2, "")
        assert err.startswith("truecal: ")
