"""How many trusted labels an interval of a given width needs beside a judge."""

from math import ceil
from statistics import NormalDist

from truecal import options
from truecal.errors import InputError


def labels_needed(width: float, judge_accuracy: float = 0.5, *, level: float = 0.95, rate: float = 0.5) -> int:
    r"""Compute how many trusted labels give an interval of the calibration error of about a given width.

    Parameters
    ----------
    width : float
        Upper less lower limit of the interval.
    judge_accuracy : float, default 0.5
        How often the judge is right, from 0.5 (no judge) to 1.
    level : float, default 0.95
        Level of the interval.
    rate : float, default 0.5
        How often the outcome occurs.

    Returns
    -------
    int
        Number of labels, drawn at random from many more judged rows.

    Raises
    ------
    InputError
        `width`, `rate` or `level` is not strictly between 0 and 1, or `judge_accuracy` not in [0.5, 1].

    Notes
    -----
    :math:`n = (2 z / w)^2 \, r (1 - r) (1 - R^2)`, with r the rate and R the correlation of the outcome with the verdict
    of a judge whose mistakes do not depend on the outcome. It holds for errors that are clearly larger than
    their noise; intervals of nearly calibrated models are shorter.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.lab.labels_needed(0.1), tc.lab.labels_needed(0.1, judge_accuracy=0.9)
    (385, 139)
    """
    options.between(width, "width", 0.0, 1.0)
    if not 0.5 <= judge_accuracy <= 1:
        raise InputError(f"judge_accuracy must lie between 0.5, no judge, and 1, not {judge_accuracy!r}")
    options.between(rate, "rate", 0.0, 1.0)
    options.level(level)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    variance, judged_rate = rate * (1 - rate), judge_accuracy * rate + (1 - judge_accuracy) * (1 - rate)
    correlation = (2 * judge_accuracy - 1) * (variance / (judged_rate * (1 - judged_rate))) ** 0.5
    return max(ceil((2 * z / width) ** 2 * variance * (1 - correlation**2)), 1)
