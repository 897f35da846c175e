"""Roelofs, Cain, Shlens and Mozer, "Mitigating bias in calibration error estimation" (2022)."""
