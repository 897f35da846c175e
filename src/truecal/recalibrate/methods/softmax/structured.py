"""Structured matrix scaling: temperature, vector and matrix scaling in one, each part used as far as the data carry it."""

from collections.abc import Sequence

from truecal.recalibrate.methods.softmax.matrix import MatrixMap
from truecal.recalibrate.outputs import Input
from truecal.recalibrate.solvers.matrix import Penalty


class StructuredMatrixScaling(MatrixMap):
    r"""A temperature plus penalised scales per class, biases and off-diagonal scales.

    .. math:: p = \mathrm{softmax}\big(x + \mathrm{diag}(v) x + M x + b\big), \qquad
        \frac{K}{n}\big(\lambda_v |v|^2 + \lambda_b |b|^2\big) + \frac{K(K-1)}{n} \lambda_M |M|^2

    x are log probabilities at the best temperature, mixed with 1 / (n + 1) of the uniform distribution. Strengths that
    grow with the number of parameters and fall with n make one default serve ten rows per class and ten thousand: few
    rows give temperature scaling, many give matrix scaling. The problem is convex; L-BFGS.

    Parameters
    ----------
    diagonal, off_diagonal, intercept : strengths of the penalties. off_diagonal=None leaves M at 0, which is structured
        vector scaling: 2K parameters.
    input : "logits" or "probs" (whose logarithms are taken).
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_, uniform_, floor_, change_, bias_ : as in `MatrixScaling`; `change_` is diag(v) + M, or v alone.

    References
    ----------
    Berta, Holzmüller, Jordan, Bach. Structured matrix scaling for multi-class calibration. AISTATS 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import StructuredMatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> logits = 3 * rng.normal(size=(4000, 4))
    >>> labels = (logits * [0.3, 0.5, 0.5, 0.7] + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> fixed = StructuredMatrixScaling().fit(logits, labels)
    >>> bool(fixed.change_[0, 0] < 0 < fixed.change_[3, 3])  # beside the common temperature: less of the first, more of the last
    True
    """

    def __init__(
        self,
        *,
        diagonal: float = 1.0,
        off_diagonal: float | None = 1.0,
        intercept: float = 1.0,
        input: Input = "logits",  # noqa: A002
        classes: Sequence[object] | None = None,
    ) -> None:
        self.diagonal = diagonal
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.input = input
        self.classes = classes

    def penalty(self) -> Penalty:
        return Penalty(self.diagonal, self.off_diagonal, self.intercept)
