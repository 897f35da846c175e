"""Resampling: how an estimate would vary on other rows of the same kind."""
