"""Data that stay where they are: files and clusters, reduced to sketches by the engine that holds them.

The folder is not called `scan`, because importing it would then replace the function `truecal.scan` by a module.
"""

from truecal.scanning.answer import measure_sketch
from truecal.scanning.scan import Scan, scan

__all__ = ["Scan", "measure_sketch", "scan"]
