"""Maps on top of other maps."""
