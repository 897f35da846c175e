"""Errors of residuals smoothed over [0, 1]."""
