"""The page of several models on the same rows."""
