"""The rank series: truecal's default estimator.

Names load on first use: the estimator and what tests whole families with it are built on parts of this folder that do not need it.
"""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names

if TYPE_CHECKING:
    from truecal.estimate.rank_series.clustered import ClusteredSeries as ClusteredSeries
    from truecal.estimate.rank_series.family import Family as Family
    from truecal.estimate.rank_series.joint_labels import label_test as label_test
    from truecal.estimate.rank_series.many_classes import of_many_classes as of_many_classes
    from truecal.estimate.rank_series.paired import Side as Side
    from truecal.estimate.rank_series.series import RankSeries as RankSeries

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.estimate.rank_series.clustered": "ClusteredSeries",
        "truecal.estimate.rank_series.family": "Family",
        "truecal.estimate.rank_series.joint_labels": "label_test",
        "truecal.estimate.rank_series.many_classes": "of_many_classes",
        "truecal.estimate.rank_series.paired": "Side",
        "truecal.estimate.rank_series.series": "RankSeries",
    },
)
