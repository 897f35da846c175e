"""The report: one self-contained HTML page about one set of predictions."""
