"""Pictures of studies."""

from truecal.plot.study.interventions import write_pictures

__all__ = ["write_pictures"]
