"""Build the documentation: `python -m tools.site`."""
