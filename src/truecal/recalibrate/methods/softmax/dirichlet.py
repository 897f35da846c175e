"""Dirichlet calibration: matrix scaling of log probabilities, with off-diagonal and intercept regularisation."""

from collections.abc import Sequence

from truecal.recalibrate.methods.softmax.matrix import DIAGONAL, STRENGTH, MatrixMap
from truecal.recalibrate.outputs import Input
from truecal.recalibrate.solvers.matrix import Penalty


class DirichletCalibration(MatrixMap):
    r"""The posterior of Dirichlet distributed probabilities, one Dirichlet per class: softmax(W ln p + b).

    .. math:: \hat p = \mathrm{softmax}(W \ln p + b), \qquad \text{ODIR:} \quad
        \frac{K(K-1)}{n} \lambda \sum_{j \ne k} W_{jk}^2 + \frac{K}{n} \mu \sum_k b_k^2

    The multiclass form of beta calibration. As a family of maps it is matrix scaling of the log probabilities; the fit
    starts from temperature scaling, to which the penalties shrink (the diagonal too, by 0.09 K / n).

    Parameters
    ----------
    off_diagonal, intercept : strengths lambda and mu of the penalties; 0 for none. Divided by n, so that one value
        serves samples of all sizes.
    input : "probs", or "logits" (whose softmax is p).
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_, uniform_, floor_, change_, bias_ : as in `MatrixScaling`.

    References
    ----------
    Kull, Perello Nieto, Kängsepp, Silva Filho, Song, Flach. Beyond temperature scaling: obtaining well-calibrated
    multiclass probabilities with Dirichlet calibration. NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import DirichletCalibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 50_000)
    >>> labels = (2 * np.log(p) + [0.5, 0.0, -0.5] + rng.gumbel(size=p.shape)).argmax(axis=1)
    >>> fixed = DirichletCalibration().fit(p, labels)
    >>> round(fixed.temperature_, 1), (fixed.bias_ - fixed.bias_[1]).round(1)
    (0.5, array([ 0.5,  0. , -0.5]))
    """

    def __init__(
        self,
        *,
        off_diagonal: float = STRENGTH,
        intercept: float = STRENGTH,
        input: Input = "probs",  # noqa: A002
        classes: Sequence[object] | None = None,
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.input = input
        self.classes = classes

    def penalty(self) -> Penalty:
        return Penalty(DIAGONAL, self.off_diagonal, self.intercept)
