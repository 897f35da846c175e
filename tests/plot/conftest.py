"""What drawing may not leave behind."""

import pytest

from tests.lazy import Lazy

matplotlib, plt = Lazy("matplotlib"), Lazy("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _no_figures_or_settings_left_behind():
    plt.close("all")
    before = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == before
