"""truecal: how far a classifier's confidence is from the truth, how sure that answer is, and what fixes it."""

from truecal.errors import FileError, InputError, MissingExtraError, TruecalError, TruecalWarning
from truecal.estimate import *  # noqa: F403
from truecal.predictions import Predictions, read
from truecal.profile import Profile
