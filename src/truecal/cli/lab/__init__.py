"""`truecal lab` and its commands."""

from truecal.cli.lab.trials import lab

__all__ = ["lab"]
