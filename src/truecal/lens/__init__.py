"""Lenses: what of a prediction is judged."""

from truecal.lens.all_label import AllLabels
from truecal.lens.canonical import Canonical
from truecal.lens.class_wise import ClassWise
from truecal.lens.default import default_lens
from truecal.lens.grouping import GroupedLens, GroupedVectorLens, Grouping
from truecal.lens.lens import Lens
from truecal.lens.one_class import OneClass
from truecal.lens.top_k import TopK
from truecal.lens.top_label import TopLabel
from truecal.lens.vector import AnyLens, Vector, VectorLens

__all__ = [
    "AllLabels",
    "AnyLens",
    "Canonical",
    "ClassWise",
    "GroupedLens",
    "GroupedVectorLens",
    "Grouping",
    "Lens",
    "OneClass",
    "TopK",
    "TopLabel",
    "Vector",
    "VectorLens",
    "default_lens",
]
