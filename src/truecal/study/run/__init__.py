"""Running a study: jobs, rows, metrics."""
