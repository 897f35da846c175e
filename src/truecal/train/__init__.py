"""What to do while training: losses that keep a network honest, and a log of its calibration epoch by epoch.

All of it is torch (`pip install 'truecal[torch]'`), which loads on the first use of a name here and never before. Binary logits
have shape (n,) and belong to the positive class, others (n, classes); targets are class indices, or soft labels with one
probability per class (per row for binary logits). Each loss at strength 0 is torch's own cross-entropy, bit for bit.
"""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; at run time __getattr__ does the same on use
    from truecal.train.focal import FocalLoss as FocalLoss
    from truecal.train.focal import focal_loss as focal_loss
    from truecal.train.log import CalibrationLog as CalibrationLog
    from truecal.train.mixing import Mixup as Mixup
    from truecal.train.mixing import mixup as mixup
    from truecal.train.penalty import PenalizedCrossEntropy as PenalizedCrossEntropy
    from truecal.train.penalty import mmce as mmce
    from truecal.train.penalty import soft_binned_error as soft_binned_error
    from truecal.train.smoothing import LabelSmoothing as LabelSmoothing
    from truecal.train.smoothing import cross_entropy as cross_entropy
    from truecal.train.smoothing import smoothed_cross_entropy as smoothed_cross_entropy

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.train.focal": "FocalLoss focal_loss",
        "truecal.train.log": "CalibrationLog",
        "truecal.train.mixing": "Mixup mixup",
        "truecal.train.penalty": "PenalizedCrossEntropy mmce soft_binned_error",
        "truecal.train.smoothing": "LabelSmoothing cross_entropy smoothed_cross_entropy",
    },
)


def __dir__() -> list[str]:
    return list(__all__)
