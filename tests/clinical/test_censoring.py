"""Outcomes that are censored or missing: weights by hand, and the uncensored answer within the interval."""

import numpy as np
import pytest

import truecal as tc
from tests.clinical.coverage import censoring_coverage
from tests.simulations import at_least, at_most, datasets


def test_weights_by_hand():
    time, event = [1, 2, 2, 3, 4, 5], [1, 0, 1, 1, 0, 1]
    weighted = tc.clinical.censoring_weights(time, event, 4.5)
    # censored at 2 (at risk without the event at 2: 4), at 4 (at risk: 2)
    assert weighted.weights == pytest.approx([1, 0, 1, 4 / 3, 0, 8 / 3])
    assert weighted.outcome.tolist() == [1, 0, 1, 1, 0, 0]
    assert weighted.unknown == 2
    assert weighted.weights.sum() == pytest.approx(6)


def test_groups_have_their_own_censoring():
    time, event, site = np.array([1, 2, 3, 1, 2, 3.0]), np.array([0, 1, 0, 1, 1, 0]), np.array(list("aaabbb"))
    weighted = tc.clinical.censoring_weights(time, event, 2.5, by=site)
    assert weighted.weights == pytest.approx([0, 1.5, 1.5, 1, 1, 1])
    selected = weighted.predictions([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], clusters=site, columns={"site": site})
    assert len(selected) == 5
    assert selected.columns["site"].tolist() == ["a", "a", "b", "b", "b"]


@pytest.mark.slow
def test_a_censored_cohort_gives_the_uncensored_answer_at_the_stated_rate():
    """200 cohorts: intervals at 95 % hold the truth neither less nor more often (binomial tests at 0.1 %)."""
    trials = datasets(200)
    shares = censoring_coverage(range(trials))
    assert 0.25 < shares.pop("censored") < 0.35
    for name, share in shares.items():
        assert at_least(round(share * trials), trials, 0.95), name
        assert at_most(round(share * trials), trials, 0.95), name


@pytest.mark.parametrize(
    ("time", "event", "horizon", "message"),
    [
        ([1.0, np.nan], [1, 0], 1, "row 1 is nan"),
        ([1.0, 0.0], [1, 0], 1, "row 1 is 0"),
        ([1.0, None], [1, 0], 1, "time must be"),
        ([1.0, 2.0], [1, 2], 1, "event must be 0 .* row 1 is"),
        ([1.0, 2.0], [1], 1, "one of each per row"),
        ([1.0, 2.0], [1, 0], 0, "horizon must be a time above 0"),
        ([1.0, 2.0], [1, 0], 5, "nobody was followed"),
    ],
)
def test_bad_follow_up_is_refused_by_name(time, event, horizon, message):
    with pytest.raises(tc.InputError, match=message):
        tc.clinical.censoring_weights(time, event, horizon)
