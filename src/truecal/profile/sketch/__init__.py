"""The Sketch: a Profile's bounded cousin."""
