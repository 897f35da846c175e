"""Trials of estimators, intervals and tests in worlds."""
