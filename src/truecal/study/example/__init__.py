"""A real study to start from."""
