"""Lenses: what of a prediction is judged."""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; at run time names load on first use
    from truecal.lens.all_label import AllLabels as AllLabels
    from truecal.lens.canonical import Canonical as Canonical
    from truecal.lens.class_wise import ClassWise as ClassWise
    from truecal.lens.default import default_lens as default_lens
    from truecal.lens.grouping import Grouping as Grouping
    from truecal.lens.lens import Lens as Lens
    from truecal.lens.lens import check_lens as check_lens
    from truecal.lens.one_class import OneClass as OneClass
    from truecal.lens.sample import Sample as Sample
    from truecal.lens.top_k import TopK as TopK
    from truecal.lens.top_label import TopLabel as TopLabel

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.lens.all_label": "AllLabels",
        "truecal.lens.canonical": "Canonical",
        "truecal.lens.class_wise": "ClassWise",
        "truecal.lens.default": "default_lens",
        "truecal.lens.grouping": "Grouping",
        "truecal.lens.lens": "Lens check_lens",
        "truecal.lens.one_class": "OneClass",
        "truecal.lens.sample": "Sample",
        "truecal.lens.top_k": "TopK",
        "truecal.lens.top_label": "TopLabel",
    },
)
