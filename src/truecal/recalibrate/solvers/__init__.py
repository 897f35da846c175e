"""Maximum likelihood behind the maps."""
