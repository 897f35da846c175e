"""Clean and shifted data."""
