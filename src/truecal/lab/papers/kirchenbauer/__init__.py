"""Kirchenbauer, Oaks and Heim (G): calibration in context."""
