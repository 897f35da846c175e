"""What an engine must find in a row: how a lens describes itself to `truecal.scan`, which knows no lens by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from truecal.predictions import Predictions


@dataclass(frozen=True)
class PushedDown:
    """The most probable class ("top"), the probability of one class ("class"), or one dataset per class ("classes").

    `index` says which class, of predictions with the same classes.
    """

    kind: Literal["top", "class", "classes"]
    index: Callable[[Predictions], int] | None = None
