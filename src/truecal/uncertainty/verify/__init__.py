"""Promises: can the error be said to be below a threshold?"""

from truecal.uncertainty.verify.binned_error import squared_errors
from truecal.uncertainty.verify.cells import OutputCells
from truecal.uncertainty.verify.limit import rejects

__all__ = ["OutputCells", "rejects", "squared_errors"]
