"""Peng, Alamzadeh and Ester, "Better calibration error estimation for reliable uncertainty quantification" (2022)."""
