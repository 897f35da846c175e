"""Sums over segments against a loop over all of them, and what counts as a segment or a test."""

from itertools import combinations, product

import numpy as np
import pytest

from truecal.errors import FileError, InputError
from truecal.groups.segment_tests import (
    CONTRASTS,
    SegmentNull,
    SegmentTests,
    correct_scores,
    critical_value,
    difference,
    joint_null,
    log_evidence,
    normal_score,
)
from truecal.groups.segments import Level, Records, SegmentSums, read_column
from truecal.parallel import ignore_progress


def records(n=600, seed=0, **further):
    rng = np.random.default_rng(seed)
    columns = {"a": rng.integers(0, 3, n), "b": rng.integers(0, 2, n), "c": rng.choice(["x", "y", "z"], n)}
    score = rng.random(n)
    return Records.of(score, (rng.random(n) < score).astype(float), columns, **further)


def column_of(name, values, smallest):
    """The levels of a column whose entries stand for one row each."""
    return read_column(name, values, np.ones(len(values)), smallest)


def tables(held, depth=3, smallest=20):
    columns = [read_column(name, values, held.count, smallest) for name, values in held.columns.items()]
    return SegmentSums(held, columns, depth, smallest), columns


def test_every_segment_has_the_sums_of_its_rows():
    records_ = records()
    result, columns = tables(records_)
    values = np.stack([records_.residual(records_.score), records_.count], axis=1)
    sums = result(values)
    expected = 0
    for depth in range(4):
        for subset in combinations(range(3), depth):
            for codes in product(*[range(len(columns[j].levels)) for j in subset]):
                inside = np.all([columns[j].codes == k for j, k in zip(subset, codes, strict=True)], axis=0)
                expected += bool(np.sum(inside) >= 20) if depth else 1
    assert len(result) == expected
    for segment in range(len(result)):
        rows = result.mask(segment)
        for q in range(4):
            np.testing.assert_allclose(sums[segment, q], values[rows & (records_.region == q)].sum(axis=0), atol=1e-9)


def test_a_segment_with_the_rows_of_a_coarser_one_is_left_out():
    records_ = records()
    records_.columns["copy"] = records_.columns["a"]
    result, _ = tables(records_, depth=2)
    names = {tuple(sorted(result.columns[j].name for j, _ in result.levels(s))) for s in range(len(result))}
    assert ("a", "copy") not in names
    assert ("a", "b") in names


def test_contrasts_are_sums_over_regions_corrected_by_class():
    records_ = records()
    result, _ = tables(records_)
    tests = SegmentTests.of(result)
    residuals = records_.residual(records_.score)[:, None]
    sums = result(residuals)
    for i in (0, 7, len(tests.index) - 1):
        segment, contrast = tests.segment[i], tests.contrast[i]
        assert tests.contrast_sums(residuals)[i, 0] == pytest.approx(CONTRASTS[contrast] @ sums[segment, :, 0])
    whole = (tests.contrast == 0) & (result.depth[tests.segment] == 1)
    # Of the false finds whole segments may take 0.6, and a depth twice as many as the one before it.
    of_depth = 2.0 ** np.arange(result.max_depth + 1)
    np.testing.assert_allclose(
        tests.log_multiplicity[whole], np.log(whole.sum() / (0.6 * of_depth[1] / of_depth.sum()))
    )


def test_normal_scores_rise_and_the_critical_value_inverts_the_log_evidence():
    z = np.linspace(-4, 8, 50)
    for skewness in (-0.4, 0.0, 0.4):
        assert (np.diff(normal_score(z, np.full(50, skewness))) >= 0).all()
    value = critical_value(2.5, 6.0)
    assert log_evidence(np.array([value]), np.array([6.0]))[0] == pytest.approx(2.5)


def test_redraws_end_early_only_where_all_of_them_would_find_nothing():
    """At a level near 0 every redraw is made; where the decision at 0.95 ends them early, it is the same."""
    finds = ended = 0
    for seed in range(24):
        records_ = records(300, seed)
        records_ = Records.of(
            records_.score,
            np.where(records_.columns["a"] == 1, records_.ones * (seed % 3 > 0), records_.ones),
            records_.columns,
        )
        result, _ = tables(records_)
        short, full = (joint_null(SegmentTests.of(result), 199, level, ignore_progress) for level in (0.95, 1e-9))
        assert len(full.largest) == 199
        np.testing.assert_array_equal(short.largest, full.largest[: len(short.largest)])
        np.testing.assert_array_equal(short.p_values(0.95) <= 0.05, full.p_values(0.95) <= 0.05)
        finds += bool((full.p_values(0.95) <= 0.05).any())
        ended += len(short.largest) < 199
    assert finds >= 8
    assert ended >= 8


def test_p_values_step_down():
    """Four redraws: the first test is reached by none, so it is left out, and then none reaches the second."""
    largest = np.array([[3.0, 1.0], [3.0, 1.5], [2.5, 1.0], [2.0, 1.0]])
    which = np.array([[0, 1], [0, 2], [0, 2], [0, 1]])
    tests = SegmentTests(None, np.arange(3), np.zeros(3))
    null = SegmentNull(tests, np.ones(3), np.array([5.0, 2.0, 1.2]), largest, which)
    assert null.limit(0.8) == pytest.approx(3.0, abs=1e-3)
    assert null.p_values(0.8).tolist() == [1 / 5, 1 / 5, 2 / 5]
    assert null.p_values(0.9).tolist() == [1 / 5, 1.0, 1.0]


@pytest.mark.parametrize("kind", ["rows", "weights", "units", "certain"])
def test_limits_contain_the_difference_and_grow_with_the_critical_value(kind):
    further = {
        "weights": {"weight": np.random.default_rng(1).gamma(2, 1, 600)},
        "units": {"unit": np.repeat(np.arange(60), 10)},
    }.get(kind, {})
    records_ = records(**further)
    if kind == "certain":
        records_ = Records.of(np.round(records_.score), records_.ones, records_.columns)
    inside = np.asarray(records_.columns["a"]) == 1
    # Scores of 0 and 1 fill two of the four regions.
    for contrast in (0, 7) if kind == "certain" else range(8):
        value, low, high = difference(records_, inside, contrast, 2.0, 3.0)
        _, lower, higher = difference(records_, inside, contrast, 4.0, 3.0)
        assert lower <= low <= value <= high <= higher
    value, *_ = difference(records_, inside, 0, 2.0, 3.0)
    assert value == pytest.approx(
        np.average(records_.score[inside], weights=records_.mass[inside])
        - np.average(records_.ones[inside], weights=records_.mass[inside])
    )


def test_correction_makes_pieces_agree_and_leaves_the_rest():
    records_ = records(2000)
    rows = np.flatnonzero(np.asarray(records_.columns["b"]) == 1)
    score = correct_scores(records_, rows, records_.score)
    assert records_.residual(score)[rows].sum() == pytest.approx(0, abs=0.5)
    others = np.setdiff1d(np.arange(2000), rows)
    assert (score[others] == records_.score[others]).all()


def test_correction_of_equal_scores_does_not_depend_on_the_order_of_rows():
    records_ = records(2000)
    records_ = Records.of(np.round(records_.score, 1), records_.ones, records_.columns)
    shuffled = np.random.default_rng(1).permutation(2000)
    other = Records.of(records_.score[shuffled], records_.ones[shuffled], records_.columns)
    rows = np.arange(2000)
    np.testing.assert_allclose(
        correct_scores(records_, rows, records_.score)[shuffled], correct_scores(other, rows, other.score)
    )


def test_levels_of_all_kinds_hold_the_rows_they_were_made_from():
    rng = np.random.default_rng(0)
    n = 1000
    gone = np.array([None if i % 7 == 0 else f"v{i % 3}" for i in range(n)], object)
    columns = {
        "text": rng.choice(["x", "y"], n),
        "gone": gone,
        "number": np.where(np.arange(n) % 9 == 0, np.nan, rng.normal(size=n)),
        "few": rng.integers(0, 4, n).astype(float),
        "mostly": np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
        "flag": rng.random(n) < 0.5,
        "day": np.datetime64("2026-01-01") + rng.integers(0, 90, n),
        "wait": rng.integers(0, 90, n).astype("timedelta64[s]"),
        "id": np.array([f"u{i}" for i in range(n)]),
        "many": rng.choice([f"m{i}" for i in range(80)], n),
    }
    for name, values in columns.items():
        column = column_of(name, values, 5)
        for code, level in enumerate(column.levels):
            assert (level.holds(values) == (column.codes == code)).all(), (name, level)
            assert Level.of(level.record()) == level
    assert [level.text for level in column_of("few", columns["few"], 5).levels] == ["0", "1", "2", "3"]
    assert len(column_of("many", columns["many"], 5).levels) == 51
    assert column_of("gone", gone, 5).levels[-1].kind == "missing"
    assert column_of("id", columns["id"], 5).levels[0].kind == "other"


def test_counts_move_the_quantiles():
    values, counts = np.arange(100.0), np.where(np.arange(100) < 50, 9.0, 1.0)
    levels = read_column("x", values, counts, 1).levels
    repeated = column_of("x", np.repeat(values, counts.astype(int)), 1).levels
    assert [level.text for level in levels] == [level.text for level in repeated]


def test_columns_that_are_no_columns_are_refused():
    with pytest.raises(InputError, match="has shape"):
        column_of("x", np.zeros((3, 2)), 1)
    with pytest.raises(InputError, match="only missing ones"):
        column_of("x", np.full(3, np.nan), 1)
    with pytest.raises(InputError, match="holds text"):
        Level("x", "below 3", "range", high=3.0).holds(np.array(["a"]))
    with pytest.raises(FileError, match="a level must be an object"):
        Level.of({"column": "x"})
