"""Lenses: what of a prediction is judged."""

from truecal.lenses.lens import Lens, Sample, check_lens
from truecal.lenses.one_probability import AllLabels, ClassWise, OneClass, TopLabel, default_lens
from truecal.lenses.several_probabilities import Canonical, Grouping, TopK

__all__ = [
    "AllLabels",
    "Canonical",
    "ClassWise",
    "Grouping",
    "Lens",
    "OneClass",
    "Sample",
    "TopK",
    "TopLabel",
    "check_lens",
    "default_lens",
]
