"""The sketch: what it sums, how it adds, what it refuses, how it is kept on disk."""

import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecal as tc
from tests.engines.worlds import KINDS, draw, score_lists
from truecal.profile import Sketch
from truecal.profile.cells import SUMS, cell_edge


def naive(c, y, w=None):
    """Sums per cell with a dict and a loop."""
    w = np.ones(len(c)) if w is None else w
    cells = {}
    for score, outcome, weight in zip(np.asarray(c, np.float64).tolist(), y.tolist(), w.tolist(), strict=True):
        edge = float(cell_edge(np.array([score]))[0])
        r = score - edge
        row = (1, weight * outcome, weight * r, weight * r * r, weight * r * outcome, weight, weight * weight)
        covered = cells.setdefault(edge, [np.zeros(7), [], []])
        covered[0] += row
        covered[1].append(score)
    return {edge: (sums, min(scores), max(scores)) for edge, (sums, scores, _) in sorted(cells.items())}


def same(one, other):
    """Counts and extremes to the last bit, other sums to 1e-12."""
    np.testing.assert_array_equal(one.edges, other.edges)
    np.testing.assert_array_equal(one.low, other.low)
    np.testing.assert_array_equal(one.high, other.high)
    np.testing.assert_array_equal(one.sums["n"], other.sums["n"])
    for name in SUMS:
        np.testing.assert_allclose(one.sums[name], other.sums[name], rtol=1e-12, atol=1e-300)
    assert one.fraction == other.fraction
    assert one.precision == other.precision


@given(score_lists(), st.integers(0, 2**32), st.booleans())
def test_sums_are_those_of_a_loop(scores, seed, weighted):
    rng = np.random.default_rng(seed)
    c, y = np.abs(np.array(scores)), rng.integers(0, 2, len(scores))
    w = rng.integers(1, 9, len(c)) / 4 if weighted else None
    sketch = Sketch.from_arrays(c, y, w)
    expected = naive(c, y, w)
    np.testing.assert_array_equal(sketch.edges, list(expected))
    for i, name in enumerate(SUMS):
        np.testing.assert_allclose(sketch.sums[name], [sums[i] for sums, _, _ in expected.values()], rtol=1e-13)
    np.testing.assert_array_equal(sketch.low, [low for _, low, _ in expected.values()])
    np.testing.assert_array_equal(sketch.high, [high for _, _, high in expected.values()])


@given(score_lists(), st.lists(st.integers(0, 60), max_size=6), st.integers(0, 2**32), st.booleans())
def test_parting_and_order_do_not_matter(scores, cuts, seed, weighted):
    rng = np.random.default_rng(seed)
    c, y = np.array(scores), rng.integers(0, 2, len(scores))
    w = rng.random(len(c)) + 0.5 if weighted else None
    whole = Sketch.from_arrays(c, y, w)
    order = rng.permutation(len(c))
    parts = np.split(order, sorted(min(cut, len(c)) for cut in cuts))  # some of them empty
    sketches = [Sketch().update(c[p], y[p], None if w is None else w[p]) for p in parts]
    same(sum(sketches, Sketch()), whole)
    same(sum(sketches[::-1], Sketch()), whole)
    one_row_each = [Sketch.from_arrays(c[i : i + 1], y[i : i + 1], None if w is None else w[i : i + 1]) for i in order]
    same(sum(one_row_each[1:], one_row_each[0]), whole)


def test_float32_sums_are_exact_in_any_order():
    c, y = draw("float32", 200_000, 0)
    one, other = Sketch.from_arrays(c, y), Sketch.from_arrays(c[::-1].copy(), y[::-1].copy())
    np.testing.assert_array_equal(one.sums["r"], other.sums["r"])
    np.testing.assert_array_equal(one.sums["ry"], other.sums["ry"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_profile_has_the_sums_and_the_size_of_all_rows(kind, weighted):
    c, y = draw(kind, 5000, 0)
    w = np.random.default_rng(0).random(5000) + 0.1 if weighted else None
    exact, cells = tc.profile.Profile.from_arrays(c, y, w), Sketch.from_arrays(c, y, w).to_profile()
    for name in ("w", "c", "y", "cc", "cy"):
        ends = [np.array([[p.rows]]) for p in (exact, cells)]
        one, other = (p.sums(name, p.at_count(e)) for p, e in zip((exact, cells), ends, strict=True))
        np.testing.assert_allclose(one, other, rtol=1e-11)
    np.testing.assert_allclose(cells.size, exact.size, rtol=1e-12)
    assert cells.counted == exact.counted
    assert (np.diff(cells.scores) >= 0).all()
    assert tc.BinnedECE()(cells).n == 5000


def test_whole_weights_are_counts():
    c, y = draw("uniform", 3000, 1)
    w = np.random.default_rng(1).integers(0, 4, 3000)
    counted, repeated = Sketch.from_arrays(c, y, w), Sketch.from_arrays(np.repeat(c, w), np.repeat(y, w))
    assert tc.DebiasedECE()(counted).power == pytest.approx(tc.DebiasedECE()(repeated).power, rel=1e-12)
    assert counted.to_profile().size == repeated.to_profile().size == w.sum()


def test_size_does_not_grow_with_rows():
    rng = np.random.default_rng(0)
    sketch = Sketch()
    sizes = []
    for _ in range(8):
        c = 10.0 ** rng.uniform(-20, 0, 50_000)
        sketch.update(np.where(rng.random(50_000) < 0.5, c, 1 - c), rng.integers(0, 2, 50_000))
        sizes.append(sketch.nbytes)
    assert sizes[-1] < 2**21
    assert sizes[-1] < 1.2 * sizes[3]


def test_many_are_merged_at_once_as_one_by_one():
    rng = np.random.default_rng(3)
    c, y = rng.random(900), rng.integers(0, 2, 900)
    parts = [Sketch.from_arrays(c[i::90], y[i::90]) for i in range(90)]
    at_once, one_by_one = Sketch().merge(*parts), sum(parts[1:], parts[0])
    for name in ("edges", "low", "high"):
        assert (getattr(at_once, name) == getattr(one_by_one, name)).all()
    assert all((at_once.sums[name] == one_by_one.sums[name]).all() for name in Sketch.SUMS)
    assert at_once.rows == 900


def test_refusals_name_what_is_wrong():
    with pytest.raises(tc.InputError, match=r"row 1 is 1\.5"):
        Sketch.from_arrays([0.5, 1.5], [0, 1])
    with pytest.raises(tc.InputError, match="row 0 is nan"):
        Sketch.from_arrays([np.nan], [0])
    with pytest.raises(tc.InputError, match="one dataset"):
        Sketch.from_arrays([[0.5]], [[1]])
    with pytest.raises(tc.InputError, match="empty"):
        Sketch().to_profile()
    with pytest.raises(tc.InputError, match="must be a Sketch"):
        Sketch().merge(3)
    with pytest.raises(TypeError):
        Sketch() + 3
    assert Sketch.from_arrays([], []).rows == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_saved_sketches_come_back_whole(tmp_path, weighted):
    c, y = draw("float32", 3000, 2)
    sketch = Sketch.from_arrays(c, y, np.linspace(0.5, 2, 3000) if weighted else None)
    sketch.save(tmp_path / "s.npz")
    again = Sketch.load(tmp_path / "s.npz")
    same(again, sketch)
    assert tc.RankSeries()(again).value == tc.RankSeries()(sketch).value
    assert [f.name for f in tmp_path.iterdir()] == ["s.npz"]
    Sketch().save(tmp_path / "s.npz")
    assert Sketch.load(tmp_path / "s.npz").rows == 0


def test_damaged_foreign_and_newer_files_are_refused(tmp_path):
    file = tmp_path / "s.npz"
    with pytest.raises(tc.errors.FileError, match="no file"):
        Sketch.load(file)
    sketch = Sketch.from_arrays([0.3, 0.1, 0.9], [1, 0, 1])
    sketch.save(file)
    whole = file.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(tc.errors.FileError, match="damaged"):
            Sketch.load(file)
    middle = bytearray(whole)
    for points in range(60, len(whole) - 60, 97):
        middle[points] ^= 0xFF
    file.write_bytes(bytes(middle))
    with pytest.raises(tc.errors.FileError, match="damaged"):
        Sketch.load(file)
    np.savez(file, scores=[0.3], outcomes=[1])
    with pytest.raises(tc.errors.FileError, match="not a saved sketch"):
        Sketch.load(file)
    good = {"edges": sketch.edges, "low": sketch.low, "high": sketch.high, **sketch.sums}
    good |= {"format": "truecal.sketch", "version": 1, "fraction": 0.0, "precision": 8}
    wrong = {
        "newer truecal": {"version": 99},
        "cells are not": {"edges": sketch.edges + 1e-5},
        "counts are invalid": {"y": sketch.sums["n"] + 5},
        "do not match": {"r": np.ones(99)},
        "weights are invalid": {"precision": 3},
    }
    for words, change in wrong.items():
        np.savez(file, **(good | change))
        with pytest.raises(tc.errors.FileError, match=words):
            Sketch.load(file)
    del good["rr"]
    np.savez(file, **good)
    with pytest.raises(tc.errors.FileError, match="rr is missing"):
        Sketch.load(file)


_WRITER = """
import sys
import numpy as np
from truecal.profile import Sketch
one = Sketch.from_arrays(np.linspace(0, 1, 20_000), np.arange(20_000) % 2)
two = one + one
print("ready", flush=True)
while True:
    two.save(sys.argv[1])
    one.save(sys.argv[1])
"""


@pytest.mark.parametrize("delay", [0.013, *(pytest.param(d, marks=pytest.mark.full) for d in (0.0, 0.031, 0.057))])
def test_kill_during_a_save_leaves_the_old_file_or_the_new_one(processes, tmp_path, delay):
    file = tmp_path / "s.npz"
    Sketch.from_arrays(np.linspace(0, 1, 20_000), np.arange(20_000) % 2).save(file)
    process = processes.start(sys.executable, "-c", _WRITER, file, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    time.sleep(delay)
    process.kill()
    process.wait()
    assert Sketch.load(file).rows in (20_000, 40_000)


@given(score_lists(), st.integers(0, 2**32))
def test_cells_of_up_to_three_rows_give_them_back(scores, seed):
    c = np.abs(np.array(scores))
    y = np.random.default_rng(seed).integers(0, 2, len(c)).astype(np.uint8)
    edge = cell_edge(c)
    cells, count = np.unique(edge, return_counts=True)
    small = np.isin(edge, cells[(count <= 2) | ((count == 3) & (cells >= 2.0**-45))])
    profile = Sketch.from_arrays(c, y).to_profile()
    given_back = profile.low == profile.high
    result = np.repeat(
        np.stack([profile.scores[0], profile.outcomes[0]], axis=1)[given_back],
        profile.weights[0][given_back].astype(int),
        axis=0,
    )
    expected = sorted(zip(c[small].tolist(), y[small].tolist(), strict=True))
    for score in np.unique(c[small]):
        ones = sum(outcome for other, outcome in expected if other == score)
        rows = result[:, 0] == score
        assert np.count_nonzero(rows) >= sum(other == score for other, _ in expected)
        assert result[rows, 1].sum() == pytest.approx(ones)
