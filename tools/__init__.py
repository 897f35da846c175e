"""Tools of the project itself: checks of its wiring, its pictures, its releases. Not part of the package."""
