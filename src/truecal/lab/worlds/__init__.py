"""Worlds whose true error is known."""
