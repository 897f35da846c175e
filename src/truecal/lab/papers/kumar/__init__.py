"""Kumar, Liang and Ma, "Verified uncertainty calibration" (2019)."""
