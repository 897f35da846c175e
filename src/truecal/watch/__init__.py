"""Watch: calibration over time, an alarm that is valid whenever one looks."""
