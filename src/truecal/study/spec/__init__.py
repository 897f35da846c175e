"""The study file: read, checked, turned into jobs."""
