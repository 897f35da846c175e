"""Where predictions are read from: files and frames."""
