"""truecal: how far a classifier's confidence is from the truth, how sure that answer is, and what fixes it."""
