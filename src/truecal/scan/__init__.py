"""Data that stay where they are: files and clusters, reduced to sketches by the engine that holds them."""

from truecal.scan.accumulate import Accumulator
from truecal.scan.answer import measure_sketch
from truecal.scan.scan import Scan, scan

__all__ = ["Accumulator", "Scan", "measure_sketch", "scan"]
