"""Lenses: what of a prediction is judged."""

from truecal.lens.class_wise import ClassWise
from truecal.lens.lens import Lens
from truecal.lens.one_class import OneClass
from truecal.lens.top_label import TopLabel

__all__ = ["ClassWise", "Lens", "OneClass", "TopLabel"]
