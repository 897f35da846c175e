"""Promises: can the error be said to be below a threshold?"""

from truecal.uncertainty.verify.binned_error import squared_errors
from truecal.uncertainty.verify.limit import promised

__all__ = ["promised", "squared_errors"]
