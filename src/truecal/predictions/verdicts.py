"""Labels of which some are missing, and the verdicts of judges that stand in for them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError
from truecal.predictions.validation import as_array, as_floats, is_missing, refuse_outside_unit
from truecal.special import logit
from truecal.types import Float64s

_LIMIT = 1e-3  # of probabilities whose log odds are a feature; derived: they stay below 7


def split_missing(labels: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.generic]]:
    """Return which rows have a label, shape (n,), and all labels, the missing ones filled with the first present.

    Refuse labels that are all missing.

    >>> split_missing([1, None, 0])
    (array([ True, False,  True]), array([1, 1, 0]))
    """
    values = np.array([None if is_missing(value) else value for value in as_array(labels, "labels").tolist()], object)
    trusted = np.array([value is not None for value in values], bool)
    if not trusted.any():
        raise InputError(
            "no row has a trusted label; the error rate of the judge is estimated from trusted labels; give some"
        )
    filled = values[trusted].tolist()
    values[~trusted] = filled[0]
    return trusted, np.array(values.tolist())


def check_verdicts(judge: ArrayLike, rows: int) -> Float64s:
    """Return verdicts as features, shape (rows, judges): columns of 0 and 1 as -1 and 1, columns of probabilities as log odds.

    Refuses another number of rows, and values that are missing or outside [0, 1].

    >>> check_verdicts([0, 1], 2), check_verdicts([0.5, 0.25], 2).round(4)
    (array([[-1.],
           [ 1.]]), array([[ 0.    ],
           [-1.0986]]))
    """
    verdicts = np.asarray(as_floats(judge, "judge"), np.float64)
    columns = verdicts[:, None] if verdicts.ndim == 1 else verdicts
    if columns.ndim != 2 or len(columns) != rows or not columns.shape[1]:
        raise InputError(f"judge must have one verdict for each of the {rows} rows, not the shape {verdicts.shape}")
    refuse_outside_unit(columns, "judge")
    binary = ((columns == 0) | (columns == 1)).all(axis=0)
    return np.where(binary, 2 * columns - 1, log_odds_feature(columns))


def log_odds_feature(probs: Float64s) -> Float64s:
    """Compute log(p / (1 - p)) of probabilities clipped to [0.001, 0.999], a bounded feature of a regression.

    >>> log_odds_feature(np.array([0.5, 0.0])).round(4)
    array([ 0.    , -6.9068])
    """
    return logit(np.clip(probs, _LIMIT, 1 - _LIMIT))
