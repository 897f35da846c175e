"""What estimators of the same data share: bins of several numbers, the sweep of all norms, the basis of equal ranks."""

import numpy as np
import pytest

import truecal as tc
from truecal.estimators import sweep
from truecal.estimators.bins import Binning
from truecal.estimators.rank_series import basis


def _profile(seed: int, rows: int, weights: bool = False) -> tc.profile.Profile:
    rng = np.random.default_rng(seed)
    scores = rng.random(rows).round(3 if weights else 17)
    return tc.profile.Profile.from_arrays(scores, rng.random(rows) < scores**2, rng.random(rows) if weights else None)


@pytest.mark.parametrize("weights", [False, True])
def test_bins_made_together_are_those_made_alone(weights: bool) -> None:
    binnings = [Binning(b, scheme) for scheme in ("width", "mass") for b in (5, 10, 15, 100)]
    together, alone = _profile(0, 3000, weights), _profile(0, 3000, weights)
    Binning.make_all(together, [*binnings, binnings[0]])
    for binning in binnings:
        ours, theirs = binning.bins_of(together), binning.bins_of(alone)
        for name in ("weight", "score_sum", "outcome_sum", "count"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_the_sweep_of_two_norms_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    swept, counts = [], sweep.SweepECE._sweep
    monkeypatch.setattr(sweep.SweepECE, "_sweep", lambda self, rows: swept.append(self.norm) or counts(self, rows))
    profile = _profile(1, 2000)
    values = [tc.SweepECE(norm=norm)(profile).value for norm in (1, 2)]
    assert len(swept) == 1
    assert values == [tc.SweepECE(norm=norm)(_profile(1, 2000)).value for norm in (1, 2)]


def _two_sides(seed: int) -> tc.profile.Profile:
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.random(1000) / 2, (1 + rng.random(2000)) / 2])
    return tc.profile.Profile.from_arrays(scores, rng.random(3000) < scores**2)


def test_datasets_of_as_many_rows_on_each_side_share_their_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    results, functions = [], basis._two_sided_functions
    monkeypatch.setattr(basis, "_two_sided_functions", lambda *given: results.append(1) or functions(*given))
    basis._cached_basis.cache_clear()
    values = [tc.RankSeries()(_two_sides(seed)).value for seed in (2, 3)]
    assert len(results) == 2  # in the rank of all rows, and by side
    basis._cached_basis.cache_clear()
    assert values[1] == tc.RankSeries()(_two_sides(3)).value
