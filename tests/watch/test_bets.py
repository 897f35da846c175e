"""The bets: fair for every probability within the tolerance, and what a cell loses beside its rows."""

import numpy as np
import pytest

from truecal.watch.e_processes import (
    Batch,
    BatchGrowth,
    Evidence,
    Experts,
    MeanError,
    UnitRows,
    edges,
    starting_weight,
    unspent_weight,
)

SCORES = np.concatenate([[0.0, 1e-7, 0.01, 0.02, 0.98, 0.99, 1 - 1e-7, 1.0], np.linspace(0.05, 0.95, 19)])


def experts(tolerance):
    return Experts.of(tolerance, np.ones(len(SCORES)), SCORES)


@pytest.mark.parametrize("tolerance", [0.0, 0.02, 0.1])
def test_no_bet_wins_on_average_within_the_tolerance(tolerance):
    tilt, cost = experts(tolerance)._tilts(SCORES)
    for step in (-1.0, -0.5, 0.0, 0.5, 1.0):
        p = np.clip(SCORES + step * tolerance, 0, 1)[:, None]
        mean = p * np.exp(tilt - cost) + (1 - p) * np.exp(-cost)
        assert mean.max() <= 1 + 1e-12
    beyond = (SCORES + tolerance + 0.05)[:, None]
    mean = beyond * np.exp(tilt - cost) + (1 - beyond) * np.exp(-cost)
    assert (mean[SCORES < 0.8].max(axis=1) > 1.02).all()  # and some bet wins where calibration is off


def test_the_mixture_is_one_and_every_expert_plays():
    data = experts(0.02)
    assert np.exp(data.prior).sum() == pytest.approx(1.0)
    batch = Batch.from_units(SCORES, (SCORES > 0.3).astype(float), np.arange(len(SCORES)))
    won, entry = data.play(batch)
    assert won.shape == entry.shape == data.prior.shape == data.kinds.shape
    assert (won[data.kinds != "local"] != 0).all()
    assert (data.spans.sum(axis=1) < len(data.cuts) + 1).all()
    single = Experts(0.02, (), 0.0)
    assert len(single.spans) == 0
    assert np.exp(single.prior).sum() < 1


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_a_cell_never_wins_more_than_its_rows(tolerance):
    rng = np.random.default_rng(0)
    data = experts(tolerance)
    for cell in range(0, len(edges()) - 1, 5):
        c = rng.uniform(*edges()[cell : cell + 2], 40)
        y = rng.integers(0, 2, 40).astype(float)
        tilt, cost = data._tilts(np.array([c.mean()]))
        alone = y.sum() * tilt - 40 * cost
        edge_up, edge_down = np.minimum(c + tolerance, 1)[:, None], np.maximum(c - tolerance, 0)[:, None]
        edge = np.where(tilt > 0, edge_up, edge_down)
        rows = (y[:, None] * tilt - np.log1p(edge * np.expm1(tilt))).sum(axis=0)
        assert (alone <= rows + 1e-9).all()
        assert (rows - alone <= 0.01 + 0.02 * np.abs(rows)).all()  # and little less


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.02, 0.1])
def test_opposite_experts_win_at_most_their_shares_together(tolerance, units):
    """Mean winnings of a product's first batch, for every edge of the band that rows can be at: never beyond the shares."""
    rng = np.random.default_rng(3)
    c = np.concatenate([rng.random(60), rng.beta(0.3, 12, 60), rng.uniform(0.4, 0.4 + 1 / 64, 60)])
    code = rng.integers(0, 40, len(c)) if units else np.arange(len(c))
    batch = Batch.from_units(c, np.zeros(len(c)), code)
    if not units:
        batch = Batch(batch.n, batch.ones, batch.mean, batch.size, batch.total, batch.squares)
    data = Experts.of(tolerance, batch.n, batch.mean)
    shares, mirror = np.exp(data.play(batch).log_entry), experts_mirror(data)
    score = c if units else batch.mean[nearest_cell(batch, c)]
    tilt, cost = data._tilts(score)
    largest = 0.0
    for trial in range(40):
        high = rng.random(len(c)) < rng.random() if trial > 1 else np.full(len(c), trial == 1)
        p = np.where(high, np.minimum(c + tolerance, 1), np.maximum(c - tolerance, 0))[:, None]
        factor = (1 + p * np.expm1(tilt)) * np.exp(-cost)
        inside = np.repeat(data.spans[:, data.bin_of(score)].T[:, :, None], 10, axis=2)
        local = 1 + inside * (factor[:, None, 38:] - 1)
        each = np.concatenate([factor[:, :38], local.reshape(len(c), -1)], axis=1)
        size = np.bincount(code)[:, None]
        won = np.prod(
            np.add.reduceat(each[np.argsort(code, kind="stable")], np.cumsum(size) - size[:, 0]) / size, axis=0
        )
        together = shares * won + (shares * won)[mirror]
        allowed = 2 * np.exp(data.prior)
        assert (together <= allowed * (1 + 1e-9)).all()
        largest = max(largest, float((together / allowed).max()))
    assert largest > 0.95  # nothing is given away either


def experts_mirror(held):
    """Place of the opposite of every expert."""
    sizes = [12, 10, 8, 8, *[10] * len(held.spans)]
    return np.concatenate([sum(sizes[:i]) + np.arange(size)[::-1] for i, size in enumerate(sizes)])


def nearest_cell(batch, c):
    """The place in a batch of the cell of every score."""
    cell = np.searchsorted(edges(), batch.mean, side="right")
    return np.searchsorted(cell, np.searchsorted(edges(), c, side="right"))


def test_units_of_one_row_are_rows():
    rng = np.random.default_rng(1)
    c = rng.choice([0.1, 0.5, 0.8, 0.95], 200)
    y = (rng.random(200) < c).astype(float)
    data = Experts.of(0.02, np.ones(200), c)
    alone = Batch.from_units(c, y, np.arange(200))
    cells = Batch(alone.n, alone.ones, alone.mean, alone.size, alone.total, alone.squares)
    by_unit, by_cell = (data.play(batch).log_growth for batch in (alone, cells))
    assert by_unit == pytest.approx(by_cell, abs=1e-9)


def test_a_unit_is_one_bet_whatever_its_size():
    data = experts(0.0)
    rows = UnitRows(np.full(1000, 0.5), np.ones(1000), np.array([0]))
    won, *_ = data._play_units(rows)
    one, *_ = data._play_units(UnitRows(np.array([0.5]), np.ones(1), np.array([0])))
    assert won == pytest.approx(one)


def test_parts_of_units_keep_them_whole():
    starts = np.array([0, 3, 4, 9])
    rows = UnitRows(np.linspace(0, 1, 12), np.zeros(12), starts)
    parts = rows.parts(4)
    assert [len(part.scores) for part in parts] == [4, 5, 3]
    assert np.concatenate([part.scores for part in parts]).tolist() == rows.scores.tolist()
    assert [part.starts.tolist() for part in parts] == [[0, 3], [0], [0]]


def test_evidence_starts_at_one_and_weights_are_spent_once():
    spent = np.cumsum([starting_weight(t) for t in range(1, 3001)])
    left = np.array([unspent_weight(t) for t in range(1, 3001)])
    assert spent + left == pytest.approx(1.0)
    data = experts(0.0)
    assert Evidence.none(data).log_e == pytest.approx(0.0)
    nothing = Evidence.none(data).after(BatchGrowth(np.zeros(len(data.prior)), data.prior))
    assert nothing.log_e == pytest.approx(0.0, abs=1e-6)  # a batch that says nothing leaves e = 1
    assert nothing.log_change == pytest.approx(0.0, abs=1e-6)  # and the sum over one start


def test_what_is_kept_is_never_more_than_what_was_won():
    rng = np.random.default_rng(4)
    data = experts(0.0)
    won = rng.normal(size=(30, len(data.prior)))
    evidence, exact = Evidence.none(data), np.full(len(data.prior), -np.inf)
    for batch in won:
        evidence, exact = evidence.after(BatchGrowth(batch, data.prior)), np.logaddexp(exact, data.prior) + batch
        assert (evidence.change.astype(np.float32) == evidence.change).all()  # what a state holds
    assert (evidence.change <= exact + 1e-12).all()
    assert evidence.change == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("tolerance", [0.01, 0.02])
def test_an_expert_bets_only_where_it_expects_more_than_the_tolerance(tolerance):
    tilt, _ = experts(tolerance)._tilts(SCORES)
    temperature = tilt[:, 30:38]
    middle = np.abs(SCORES - 0.5) < 0.01
    assert (temperature[middle] == 0).all()  # even odds stay what they are
    assert ((temperature != 0).sum(axis=0) > 0).all()  # and each one bets somewhere
    assert (np.sign(temperature[:, ::-1]) * np.sign(temperature) <= 0).all()


def test_the_start_is_where_the_winnings_began():
    data = experts(0.0)
    evidence = Evidence.none(data)
    for batch in range(1, 11):
        won = np.full(len(data.prior), -1.0)
        won[3] = 2.0 if batch >= 7 else -1.0
        evidence = evidence.after(BatchGrowth(won, data.prior))
    assert evidence.start == 7


def test_the_confidence_sequence_holds_at_all_times_together():
    """400 streams of 60 looks, errors of mean 0.03: P(ever outside) <= 5 %, with three standard errors of the simulation."""
    rng = np.random.default_rng(2)
    outside = 0
    for _ in range(400):
        errors = MeanError()
        for _ in range(60):
            c = rng.beta(2.8, 0.5, 50)
            x = c - (rng.random(50) < c - 0.03)
            errors = errors.plus(50, float(x.sum()), float((x * x).sum()))
            if abs(errors.total - 0.03 * errors.size) < 2 * np.sqrt(errors.squares):
                continue  # the interval is wider than that, see below
            low, high = errors.interval(0.05)
            assert low <= errors.mean <= high
            if not low <= 0.03 <= high:
                outside += 1
                break
    assert outside <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)
    low, high = errors.interval(0.05)
    assert 4 * np.sqrt(errors.squares) / errors.size < high - low < 0.1
