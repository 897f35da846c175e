"""Comparison of what is done while training and after it."""
