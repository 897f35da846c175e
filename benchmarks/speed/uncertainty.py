"""Cost of certainty: 1000 resamples at n = 100,000 as multiples of one estimate with its sort, and the memory they take."""

import numpy as np

import truecal as tc
from benchmarks.speed.harness import Row, peak_extra_bytes, seconds_together
from truecal.inference import bootstrap, compare, tests

_N = 100_000
_FIXED = (tc.BinnedECE(), tc.BinnedECE(scheme="mass", norm=2), tc.DebiasedECE())
_FREE = (tc.SweepECE(), tc.NearestECE(), tc.RankSeries())


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    c = rng.random(_N)
    y = rng.random(_N) < c**1.2
    table = []
    for estimators, bound, repeat in ((_FIXED, 5.0, 5), (_FREE, 60.0, 3)):
        for estimator in estimators:
            one, many = seconds_together(
                lambda e=estimator: e.values(tc.profile.Profile.from_arrays(c, y)),
                lambda e=estimator: bootstrap(e, tc.profile.Profile.from_arrays(c, y), resamples=1000),
                repeat=repeat,
            )
            scheme = f", {estimator.scheme}" if isinstance(estimator, tc.BinnedECE) else ""
            what = f"bootstrap of 1000, {type(estimator).__name__}{scheme}, n = 1e5"
            table.append(Row(what, many, many / one, "one estimate incl. its sort", bound))
    profile = tc.profile.Profile.from_arrays(c, y)
    for resamples in (1000, 4000):
        extra = peak_extra_bytes(lambda m=resamples: bootstrap(tc.SweepECE(), profile, resamples=m))
        what = f"peak memory, bootstrap of {resamples}, SweepECE, n = 1e5 (MiB)"
        table.append(Row(what, 0.0, extra / 2**20, "MiB (chunks: not growing with resamples)", 128.0))
    one, test, pair = seconds_together(
        lambda: tc.RankSeries().values(tc.profile.Profile.from_arrays(c, y)),
        lambda: tests(profile),
        lambda: compare(y.astype(int), c, c**1.1, resamples=200),
        repeat=2,
    )
    table.append(Row("rank-series test, 999 redraws, n = 1e5", test, test / one, "one RankSeries incl. its sort"))
    table.append(Row("paired comparison, 200 resamples, n = 1e5", pair, pair / one, "one RankSeries incl. its sort"))
    return table
