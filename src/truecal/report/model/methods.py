"""What each number on the page is, in words, with its source."""

from truecal import names
from truecal.report.model.content import Content

# Estimator -> (what it does, reference number)
ESTIMATOR_WORDS = {
    "RankSeries": ("series in the rank of the score, debiased by leaving one out; recommended", None),
    "DebiasedECE": ("bins of equal mass, minus what chance alone would add", 3),
    "SweepECE": ("as many bins as keep the outcomes rising", 4),
    "NearestECE": ("a sliding window of neighbouring scores", 5),
    "KernelDensityECE": ("kernel estimate of the calibration curve", 6),
    "BinnedECE": ("the classical ECE; reads high, and higher with more bins", 1),
    "LabelBinnedECE": ("each score against the outcome rate of its bin", 4),
    "SmoothECE": ("residuals smoothed at the scale of the error itself", 7),
    "IsotonicError": ("root of the Brier score an isotonic fit would save; reads high", 8),
}

REFERENCES = (
    "Naeini, Cooper, Hauskrecht (2015): Obtaining well calibrated probabilities using Bayesian binning. AAAI.",
    "Guo, Pleiss, Sun, Weinberger (2017): On calibration of modern neural networks. ICML.",
    "Kumar, Liang, Ma (2019): Verified uncertainty calibration. NeurIPS.",
    "Roelofs, Cain, Shlens, Mozer (2022): Mitigating bias in calibration error estimation. AISTATS.",
    "Peng, Alamzadeh, Ester: Better calibration error estimation for reliable uncertainty quantification.",
    "Zhang, Kailkhura, Han (2020): Mix-n-Match: ensemble and compositional methods for uncertainty calibration. ICML.",
    "Błasiok, Nakkiran (2024): Smooth ECE: principled reliability diagrams via kernel smoothing. ICLR.",
    "Dimitriadis, Gneiting, Jordan (2021): Stable reliability diagrams for probabilistic classifiers. PNAS.",
)

NORM_WORDS = {1.0: "mean absolute", 2.0: "root mean square", float("inf"): "maximum"}


def definitions(content: Content) -> list[tuple[str, str]]:
    """Terms used on the page and what they mean."""
    level, tolerance = f"{content.level:.0%}", f"{100 * content.tolerance:g} percentage points"
    judged = (
        "The class with the largest probability: its probability is the confidence, and the outcome is whether it was right."
        if content.top_label
        else f"Judged here: {content.judged}. Its probability is the confidence; the outcome is whether it happened."
    )
    return [
        ("Confidence and outcome", judged),
        (
            "Calibration error",
            "How far, over all predictions, the confidence is from the frequency with which predictions of that confidence come "
            "true. Root mean square unless said otherwise: large gaps count more. The mean absolute error is what the name ECE "
            "usually stands for.",
        ),
        (
            "Interval",
            f"Made so that it holds the true error in {level} of repetitions, for a well calibrated model too. Its lower end is 0 "
            "unless the data show that the model is off.",
        ),
        (
            "p-value",
            "The probability of data this far off if the confidences were exactly right, found by redrawing the outcomes from the "
            "confidences. It says whether an error is there, not how large it is.",
        ),
        (
            "Direction",
            f"Mean confidence minus frequency. Positive: {names.tendency(content.judged, 1.0)} on average. Gaps of opposite sign "
            "cancel in it, so it can be near 0 while the error is not.",
        ),
        (
            "Bins",
            "Equal width: edges at j/b, a score on an edge belongs to the bin above it. Equal mass: the same number of predictions "
            "in each bin, equal scores never split. Sweep: equal mass, with the most bins for which outcomes rise from bin to "
            "bin. Vertical lines are Clopper-Pearson intervals of the outcome rate.",
        ),
        (
            "Band",
            f"Holds the whole calibration curve with {level} confidence, for any number of predictions, if outcomes do not become "
            "rarer as confidence grows. Where the dashed line leaves it, the model is shown to be off.",
        ),
        (
            "Tolerance",
            f"The verdict compares the interval with {tolerance}. It says 'within' or 'outside' only if the whole interval lies on "
            "that side.",
        ),
    ]
