"""Data that stay where they are: files and clusters, reduced to sketches by the engine that holds them."""

from truecal.engines.accumulate import Accumulator
from truecal.engines.scanning import Scan, scan

__all__ = ["Accumulator", "Scan", "scan"]
