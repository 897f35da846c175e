"""The engine: the same numbers whatever the workers, nothing lost when interrupted, and errors before long work."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truecal.errors import InputError, TruecalError
from truecal.estimators import BinnedECE, Estimator, SweepECE
from truecal.estimators.base import Findings
from truecal.lab import PAPER_WORLDS, BatchCache, Beta, Cell, Discrete, Power, Run, Uniform, World, simulate
from truecal.lab.trials import Value, batch_sizes, digest, name_words, seed_number

EW, SWEEP = Value(BinnedECE(norm=2)), Value(SweepECE())
WORLD = PAPER_WORLDS["resnet110_c10"]


def cells(m=40):
    return [
        Cell("skewed", WORLD, 300, m, (EW, SWEEP)),
        Cell("uniform", World(Uniform(), Power(1.5)), 90_000, 5, (EW,)),
    ]


@dataclass(frozen=True)
class Fragile(Estimator):
    """Fails on datasets with a mean outcome above `above`, or gives no number if `silent`."""

    above: float = 0.0
    silent: bool = False

    @property
    def norm(self):
        return 2.0

    def estimate(self, profile):
        broken = profile.outcomes.mean(axis=1) > self.above
        if broken.any() and not self.silent:
            raise ZeroDivisionError("too many ones")
        return Findings(np.where(broken, np.nan, 0.25))


@dataclass(frozen=True)
class Counted:
    """A measure that counts how often it is asked."""

    log: str

    @property
    def name(self):
        return "counted"

    def __call__(self, profile, seed):
        with open(self.log, "a") as file:
            file.write("x")
        return profile.scores.mean(axis=1)[None, :]


@given(st.integers(1, 10**7), st.integers(1, 5000))
def test_batches_hold_every_dataset_once_and_little_memory(n, m):
    sizes = batch_sizes(n, m)
    assert sum(sizes) == m
    assert all(size == sizes[0] for size in sizes[:-1])
    assert max(sizes) * n <= 2**18 or max(sizes) == 1


def test_workers_do_not_change_the_numbers():
    alone, together = simulate(cells(), rng=3, run=Run(workers=1)), simulate(cells(), rng=3, run=Run(workers=2))
    for one, two in zip(alone, together, strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)
    assert alone[0][0].shape == (1, 40)
    assert alone[1][0].shape == (1, 5)


def test_a_cell_gives_the_same_numbers_alone_or_in_company():
    company = simulate(cells(), rng=1)
    np.testing.assert_array_equal(company[1][0], simulate(cells()[1:], rng=1)[0][0])
    only_sweep = Cell("skewed", WORLD, 300, 40, (SWEEP,))
    np.testing.assert_array_equal(company[0][1], simulate([only_sweep], rng=1)[0][0])


def test_streams_come_from_names_and_not_from_the_bits_of_a_world():
    curve = World(Beta(np.nextafter(WORLD.scores.alpha, 9), WORLD.scores.beta), WORLD.curve)
    first, again = (simulate([Cell("a", world, 300, 40, (EW,))], rng=1)[0][0] for world in (WORLD, curve))
    np.testing.assert_allclose(again, first, atol=1e-9)
    assert not np.allclose(simulate([Cell("b", WORLD, 300, 40, (EW,))], rng=1)[0][0], first)


def test_the_numbers_are_those_of_plain_draws():
    # One batch, drawn here by hand from the documented stream.
    stream = np.random.SeedSequence(5, spawn_key=(*name_words("skewed"), 300, 0)).spawn(2)[0]
    scores, outcomes = WORLD.draw(300, 40, rng=np.random.default_rng(stream))
    naive = []
    for c, y in zip(scores, outcomes, strict=True):
        inside = np.minimum((c * 15).astype(int), 14)
        count = np.bincount(inside, minlength=15)
        gap = np.bincount(inside, c - y, 15)
        naive.append(np.sqrt(np.sum(gap[count > 0] ** 2 / count[count > 0]) / 300))
    np.testing.assert_allclose(simulate(cells(), rng=5)[0][0][0], naive, atol=1e-12)


def test_worlds_seeds_and_sizes_have_streams_of_their_own():
    first = simulate([Cell("a", WORLD, 300, 40, (EW,))], rng=0)[0][0]
    other_seed = simulate([Cell("a", WORLD, 300, 40, (EW,))], rng=1)[0][0]
    assert not np.array_equal(first, other_seed)
    assert name_words("resnet110_c10") != name_words("resnet110_c100")
    generator = np.random.default_rng(4)
    assert seed_number(generator) != seed_number(generator)
    assert seed_number(7) == 7


def test_what_is_cached_is_not_computed_again(tmp_path):
    log = tmp_path / "log"
    cell = Cell("w", WORLD, 1000, 600, (Counted(str(log)),))
    first = simulate([cell], run=Run(cache=tmp_path / "cache"))
    calls = len(log.read_text())
    assert calls == len(batch_sizes(1000, 600))
    again = simulate([cell], run=Run(cache=tmp_path / "cache"))
    assert len(log.read_text()) == calls
    np.testing.assert_array_equal(first[0][0], again[0][0])


def test_an_interrupted_run_loses_at_most_the_batch_under_way(tmp_path, monkeypatch):
    log = tmp_path / "log"
    cell = Cell("w", WORLD, 1000, 1000, (Counted(str(log)),))
    batches = len(batch_sizes(1000, 1000))
    assert batches >= 4
    real, calls = BatchCache.add, []

    def interrupted(self, key, arrays):
        real(self, key, arrays)
        calls.append(key)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(BatchCache, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate([cell], run=Run(cache=tmp_path / "cache"))
    monkeypatch.undo()
    calls_before = len(log.read_text())
    whole = simulate([cell], run=Run(cache=tmp_path / "cache"))
    assert len(log.read_text()) - calls_before == batches - 2
    np.testing.assert_array_equal(whole[0][0], simulate([cell])[0][0])


def test_another_measure_is_added_to_what_is_there(tmp_path):
    folder = tmp_path / "cache"
    simulate([Cell("w", WORLD, 300, 40, (EW,))], run=Run(cache=folder))
    both = simulate([Cell("w", WORLD, 300, 40, (EW, SWEEP))], run=Run(cache=folder))
    (file,) = folder.rglob("*.npz")
    with np.load(file, allow_pickle=False) as stored:
        assert set(stored.files) == {digest(EW), digest(SWEEP)}
    np.testing.assert_array_equal(both[0][1], simulate([Cell("w", WORLD, 300, 40, (SWEEP,))])[0][0])


def test_a_damaged_cache_file_is_computed_anew(tmp_path):
    folder = tmp_path / "cache"
    first = simulate([Cell("w", WORLD, 300, 40, (EW,))], run=Run(cache=folder))
    (file,) = folder.rglob("*.npz")
    for damage in (b"", b"not a zip", file.read_bytes()[:50]):
        file.write_bytes(damage)
        np.testing.assert_array_equal(
            simulate([Cell("w", WORLD, 300, 40, (EW,))], run=Run(cache=folder))[0][0], first[0][0]
        )
    assert not list(folder.rglob("*.part"))


def test_content_tells_worlds_apart_and_names_no_lambda():
    assert digest(World(Uniform(), Power(2))) == digest(World(Uniform(), Power(2.0)))
    assert digest(World(Uniform(), Power(2))) != digest(World(Uniform(), Power(2.1)))
    assert digest(World(Discrete([0.1, 0.2]))) != digest(World(Discrete([0.1, 0.3])))
    assert digest(BinnedECE(bins=15)) != digest(BinnedECE(bins=16))
    assert digest(World(Uniform(), lambda c: c)) is None
    assert digest(np.mean) != digest(np.median) != None  # noqa: E711 (functions of modules have a name)


def test_plain_functions_work_alone_but_not_across_processes_or_in_a_cache(tmp_path):
    cell = Cell("mine", World(Uniform(), lambda c: c**2), 100, 10, (EW,))
    assert simulate([cell])[0][0].shape == (1, 10)
    with pytest.raises(InputError, match="picklable"):
        simulate([cell, replace(cell, n=200)], run=Run(workers=2))
    with pytest.raises(InputError, match="plain function"):
        simulate([cell], run=Run(cache=tmp_path))


def test_worlds_and_measures_survive_pickling():
    for cell in cells():
        assert digest(pickle.loads(pickle.dumps(cell)).world) == digest(cell.world)


@pytest.mark.parametrize(
    ("cell", "options", "message"),
    [
        (Cell("w", WORLD, 0, 10, (EW,)), {}, "n >= 1"),
        (Cell("w", WORLD, 10, 1, (EW,)), {}, "m >= 2"),
        (Cell("w", WORLD, 10, 10, (EW,)), {"rng": -1}, "rng must be a whole number of at least 0"),
    ],
)
def test_bad_requests_are_refused(cell, options, message):
    with pytest.raises(InputError, match=message):
        simulate([cell], **options)


def test_a_run_without_workers_is_refused():
    with pytest.raises(InputError, match="workers must be a whole number of at least 1"):
        Run(workers=0)


@pytest.mark.parametrize(("silent", "message"), [(False, "too many ones"), (True, "no finite number")])
def test_an_estimator_that_cannot_work_fails_in_the_first_batch(tmp_path, silent, message):
    log = tmp_path / "log"
    measures = (Counted(str(log)), Value(Fragile(silent=silent)))
    with pytest.raises(TruecalError, match=f"Value of Fragile.*'w', n=300.*{message}"):
        simulate([Cell("w", WORLD, 300, 4000, measures)], run=Run(cache=tmp_path / "cache"))
    assert len(log.read_text()) == 1
    assert not list((tmp_path / "cache").rglob("*.npz"))


def test_an_estimator_that_fails_on_rare_draws_says_where():
    rare = World(Uniform(), lambda c: np.full_like(c, 0.5))
    with pytest.raises(TruecalError, match=r"Fragile.*n=50, batch \d+ of seed 0 failed: too many ones"):
        simulate([Cell("w", rare, 50, 20_000, (Value(Fragile(above=0.7)),))])
