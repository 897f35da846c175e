"""Lenses: what of a prediction is judged."""

from truecal.lens.all_label import AllLabels
from truecal.lens.canonical import Canonical
from truecal.lens.class_wise import ClassWise
from truecal.lens.default import default_lens
from truecal.lens.grouping import Grouping
from truecal.lens.lens import Lens, check_lens
from truecal.lens.one_class import OneClass
from truecal.lens.sample import Sample
from truecal.lens.top_k import TopK
from truecal.lens.top_label import TopLabel

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
