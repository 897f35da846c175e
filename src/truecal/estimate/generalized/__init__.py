"""The generalized calibration error: any lens, distance and binning."""
