"""The context of a calibration error on the command line: lens, selection, distance and binning in words."""
