"""Data that stay where they are: files and clusters, reduced to sketches by the engine that holds them."""

from truecal.scan.accumulate import Accumulator
from truecal.scan.scan import Scan, scan
from truecal.scan.sources import files_of, folder_values, opened

__all__ = ["Accumulator", "Scan", "files_of", "folder_values", "opened", "scan"]
