"""The fixture `calibration` for tests of models (pytest loads it where truecal is installed):

    def test_the_model_is_calibrated(calibration):
        calibration.check(y_true, y_prob, max_error=0.05)

Options `--calibration-max-error` and `--calibration-level` are the tolerance and level of checks that give none.
"""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import truecal as tc


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin to the command line."""
    group = parser.getgroup("truecal", "calibration of models")
    group.addoption("--calibration-max-error", type=float, help="Largest error that calibration.check allows.")
    group.addoption("--calibration-level", type=float, default=0.95, help="How sure a check is to be (default 0.95).")


class Calibration:
    """Checks of calibration with a default tolerance and level; a failure shows the estimate."""

    def __init__(self, max_error: float | None, level: float) -> None:
        """Store the error allowed (None: each check must say it) and the level."""
        self.max_error, self.level = max_error, level

    def check(
        self,
        data: Any,
        y_prob: Any = None,
        *,
        max_error: float | None = None,
        level: float | None = None,
        **options: Any,
    ) -> "tc.Estimate":
        """Fail unless the upper limit of the error is at most `max_error`, as in `truecal measure --max-error`.

        `data` is Predictions, or labels with `y_prob`; `options` as in :func:`truecal.calibration_error`. What is not given is
        taken from the command line. Returns the estimate; without any `max_error` the check is refused.
        """
        __tracebackhide__ = True
        import truecal as tc

        tolerance = self.max_error if max_error is None else max_error
        if tolerance is None:
            raise tc.InputError("say how large the error may be: max_error=, or pytest --calibration-max-error")
        confidence = self.level if level is None else level
        if y_prob is None:
            estimate = tc.measure(data, level=confidence, **options)
        else:
            estimate = tc.calibration_error(data, y_prob, level=confidence, **options)
        conclusion = tc.inference.conclude(estimate, tolerance=tolerance)
        if not conclusion.passed:
            pytest.fail(f"{conclusion.gate}\n{estimate}")
        return estimate


@pytest.fixture
def calibration(request: pytest.FixtureRequest) -> Calibration:
    """Return the checks with the tolerance and level of the command line: `calibration.check(y_true, y_prob, max_error=0.05)`."""
    config = request.config
    return Calibration(config.getoption("--calibration-max-error"), config.getoption("--calibration-level"))
