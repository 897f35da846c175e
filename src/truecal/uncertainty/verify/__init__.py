"""Promises: can the error be said to be below a threshold?"""

from truecal.uncertainty.verify.binned_error import squared_errors

__all__ = ["squared_errors"]
