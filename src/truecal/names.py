"""One vocabulary: what estimators, lenses, recalibrators and metrics are called on the command line, in files and on pages."""
