"""The rank series as the derivation writes it and as the package computes it are the same."""

import importlib.util
import re

import numpy as np
import pytest

import truecal as tc
from tests.tools.test_layers import ROOT

FOLDER = ROOT / "docs" / "methods"
_spec = importlib.util.spec_from_file_location("derivation", FOLDER / "rank_series.py")
derivation = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(derivation)


@pytest.mark.parametrize("n", [4, 9, 60, 400, 1000])
@pytest.mark.parametrize(
    "shape", ["uniform", "piled up", "ties", "calibrated", "both ends", "halves", "rounded", "few", "one"]
)
def test_derivation_and_package_agree(n, shape):
    rng = np.random.default_rng([n, len(shape)])
    c = rng.random(n) ** (0.1 if shape == "piled up" else 1.0)
    c = np.round(c, {"ties": 1, "rounded": 2}[shape]) if shape in ("ties", "rounded") else c
    c = 1 / (1 + np.exp(-8 * rng.normal(size=n))) if shape == "both ends" else c
    c = np.where(rng.random(n) < 0.3, 0.5, c) if shape == "halves" else c
    c = np.array([0.2, 0.5, 0.9])[(3 * c).astype(int)] if shape == "few" else c
    c = np.full(n, 0.7) if shape == "one" else c
    y = rng.random(n) < (c if shape == "calibrated" else c**1.7)
    for norm in (1, 2):
        written = derivation.rank_series(c, y, norm=norm)
        package = tc.RankSeries(norm=norm)(tc.profile.Profile.from_arrays(c, y))
        assert written.value == pytest.approx(package.value, abs=1e-11)
        assert written.low == pytest.approx(package.interval.low, abs=1e-9)
        assert written.high == pytest.approx(package.interval.high, abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_derivation_and_package_see_the_same_beyond_the_series(ties):
    rng = np.random.default_rng(3)
    c = rng.random(1020)
    c = np.round(c, 2) if ties else c
    y = rng.random(1020) < np.where(c < 0.4, 0.05, 0.95)
    written, package = derivation.rank_series(c, y), tc.RankSeries()(tc.profile.Profile.from_arrays(c, y))
    smooth = derivation.rank_series(c, y, derivation.Constants(windows_per_term=()))
    assert written.high > smooth.high + 1e-3
    assert written.low == pytest.approx(package.interval.low, abs=1e-9)
    assert written.high == pytest.approx(package.interval.high, abs=1e-9)


def _beside_a_spike(rng, ties):
    """Three of four rows have the score 0 or 1, and the curve of the others has twelve teeth."""
    c = np.clip(4 * rng.random(3000) - 1.5, 0, 1)
    c = np.round(c, 3) if ties else c
    return c, rng.random(3000) < np.where((c > 0) & (c < 1), np.where(12 * c % 1 < 0.5, 0.1, 0.9), c)


@pytest.mark.parametrize("ties", [False, True])
def test_long_ties_hide_nothing_from_runs_of_neighbours(ties):
    """Cells of equal mass are empty within a long tie, and batches of ties end in empty cells."""
    rng = np.random.default_rng(5)
    many = [_beside_a_spike(rng, ties) for _ in range(4)]
    batch = tc.RankSeries()(tc.profile.Profile.from_arrays(*(np.stack(part) for part in zip(*many, strict=True))))
    for i, (c, y) in enumerate(many):
        written, alone = derivation.rank_series(c, y), tc.RankSeries()(tc.profile.Profile.from_arrays(c, y))
        smooth = derivation.rank_series(c, y, derivation.Constants(windows_per_term=()))
        assert written.high > smooth.high + 0.003
        assert alone.interval.high == pytest.approx(written.high, abs=2e-3)
        assert batch.interval.high[i] == pytest.approx(alone.interval.high, abs=1e-9)
        assert batch.interval.low[i] == pytest.approx(alone.interval.low, abs=1e-9)


def test_the_bias_is_the_part_of_the_curve_outside_the_span():
    """Equation (8a), by averaging over all outcomes of seven rows weighted by their probability."""
    c = np.array([0.1, 0.2, 0.35, 0.5, 0.6, 0.8, 0.95])
    truth = np.array([0.3, 0.1, 0.5, 0.4, 0.9, 0.6, 0.7])
    n, terms = len(c), 2
    phi = derivation.polynomials(2 * np.arange(n) + 1, terms)
    h = (phi**2).sum(axis=0) / n
    mean = 0.0
    for outcome in np.ndindex(*[2] * n):
        y = np.array(outcome)
        r = y - c
        left_out = ((phi @ r / n) @ phi - h * r) / (1 - h)
        mean += np.prod(np.where(y == 1, truth, 1 - truth)) * np.mean(r * left_out)
    m = truth - c
    outside = m - (phi @ m / n) @ phi
    assert mean - np.mean(m**2) == pytest.approx(-np.mean(m * outside / (1 - h)), abs=1e-14)


def test_leaving_a_row_out_by_the_identity_is_leaving_it_out():
    """Equation (7) against a fit to the other rows."""
    rng = np.random.default_rng(1)
    n, terms = 30, 4
    phi, r = derivation.polynomials(2 * np.arange(n) + 1, terms), rng.normal(size=n)
    h = (phi**2).sum(axis=0) / n
    identity = ((phi @ r / n) @ phi - h * r) / (1 - h)
    for i in range(n):
        others = np.arange(n) != i
        fit = np.linalg.lstsq(phi[:, others].T, r[others], rcond=None)[0]
        assert identity[i] == pytest.approx(fit @ phi[:, i], abs=1e-10)


def test_the_page_numbers_its_equations_without_gaps_and_the_program_uses_them():
    page = (FOLDER / "rank-series.md").read_text(encoding="utf-8")
    numbers = [int(n) for n in re.findall(r"\\qquad \((\d+)\) \$\$$", page, flags=re.M)]
    assert sorted(set(numbers)) == list(range(1, 27))
    used = {int(n) for n in re.findall(r"\((\d+)\)", (FOLDER / "rank_series.py").read_text(encoding="utf-8"))}
    assert {1, *range(3, 13), *range(14, 18), *range(23, 27)} <= used


def test_the_table_of_the_page_can_be_made_again():
    lines = derivation.simulate(datasets=1, sizes=(60,))
    page = (FOLDER / "rank-series.md").read_text(encoding="utf-8")
    assert lines[0] in page
    assert all(line.split("|")[1] in page for line in lines[2:])
