"""The dossier: what a regulator or a journal asks about calibration, on pages that print."""

from truecal.report.dossier.dossier import write_dossier

__all__ = ["write_dossier"]
