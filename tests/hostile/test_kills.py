"""A few kills inside writes; `python -m tools.hostile.kills --kills 200` makes as many as are asked for."""

import pytest

from tools.hostile.kills import STAGES, run


@pytest.mark.full
def test_a_killed_study_is_whole_and_its_rerun_identical():
    counts = run(kills=4, seed=5, models=2, inside=1.0)
    assert sum(counts[stage] for stage in STAGES) == 4
