"""Names of estimators, lenses and recalibrators on the command line, in study files, in JSON and on pages.

A word stands for a public name of truecal and the arguments to call it with. It is resolved against the package
(``lens_named("class=dog").of(truecal)``), so that this module does not import what it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from truecal.errors import InputError


@dataclass(frozen=True)
class Named:
    """The class or function behind a word: its public name, its arguments, and its title on pages."""

    name: str
    title: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)

    def of(self, package: Any, **options: object) -> Any:
        """Return the object of this name in a package, called with the arguments and further `options`.

        >>> import truecal as tc
        >>> Named("TopK", arguments={"k": 3}).of(tc)
        TopK(k=3)
        """
        return getattr(package, self.name)(**self.arguments, **options)


ESTIMATORS = {
    "rank-series": Named("RankSeries", "Rank series"),
    "binned": Named("BinnedECE", "Binned (plug-in)"),
    "label-binned": Named("LabelBinnedECE", "Label-binned"),
    "debiased": Named("DebiasedECE", "Debiased"),
    "sweep": Named("SweepECE", "Monotone sweep"),
    "nearest": Named("NearestECE", "Nearest neighbours"),
    "kernel-density": Named("KernelDensityECE", "Kernel density"),
    "smooth": Named("SmoothECE", "Smooth (smECE)"),
    "isotonic": Named("IsotonicError", "Isotonic (CORP)"),
}
# Errors that papers and other tools report; pages do not show them side by side with the others.
CITED = {
    "ks": Named("KSError", "Kolmogorov-Smirnov"),
    "adaptive": Named("AdaptiveECE", "Adaptive (ACE)"),
}
LENSES = {
    "top-label": Named("TopLabel"),
    "positive": Named("OneClass"),
    "all-label": Named("AllLabels"),
    "class-wise": Named("ClassWise"),
    "canonical": Named("Canonical"),
}
RECALIBRATORS = {
    "temperature": Named("TemperatureScaling", "Temperature scaling"),
    "bias-corrected-temperature": Named("BiasCorrectedTemperature", "Bias-corrected temperature scaling"),
    "vector": Named("VectorScaling", "Vector scaling"),
    "platt": Named("PlattScaling", "Platt scaling"),
    "beta": Named("BetaCalibration", "Beta calibration"),
    "isotonic": Named("IsotonicCalibration", "Isotonic regression"),
    "histogram": Named("HistogramBinning", "Histogram binning"),
    "scaling-binning": Named("ScalingBinning", "Scaling-binning"),
    "structured-matrix": Named("StructuredMatrixScaling", "Structured matrix scaling"),
    "structured-vector": Named("StructuredMatrixScaling", "Structured vector scaling", {"off_diagonal": None}),
    "matrix": Named("MatrixScaling", "Matrix scaling"),
    "dirichlet": Named("DirichletCalibration", "Dirichlet calibration"),
    "ensemble-temperature": Named("EnsembleTemperature", "Ensemble temperature scaling"),
    "centered-isotonic": Named("CenteredIsotonic", "Centred isotonic regression"),
    "shared-isotonic": Named(
        "IsotonicCalibration", "Accuracy-preserving isotonic regression", {"multiclass": "shared"}
    ),
    "spline": Named("SplineCalibration", "Spline calibration"),
    "venn-abers": Named("VennAbers", "Venn-Abers calibration"),
    "top-versus-all": Named("TopVersusAll", "Top-versus-all temperature"),
    "shared-binning": Named("SharedBinning", "Shared binning"),
    "guaranteed-histogram": Named("HistogramBinning", "Histogram binning with a guarantee", {"scheme": "guaranteed"}),
}
NORMS = {"l1": 1.0, "l2": 2.0, "max": float("inf")}  # derived: the norm that each word means
_ONE_CLASS = "class="


def load_object(words: str) -> Any:
    """Import the object `package.module:name`, which runs code of the module; refuse one that cannot be imported.

    >>> load_object("math:sqrt")(4.0)
    2.0
    """
    module, _, name = words.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"cannot load {words!r}: {error}; give package.module:name of a module that can be imported"
        ) from error


def estimator_named(word: str) -> Named:
    """Return the `Named` estimator of a word of ESTIMATORS or CITED, such as "sweep"; refuse unknown words.

    >>> estimator_named("sweep").name
    'SweepECE'
    """
    words = {**ESTIMATORS, **CITED}
    return words[_check_word(word, words, "estimator")]


def recalibrator_named(word: str) -> Named:
    """Return the `Named` recalibrator of a word of RECALIBRATORS, such as "platt"; refuse unknown words.

    >>> recalibrator_named("structured-vector").arguments
    {'off_diagonal': None}
    """
    return RECALIBRATORS[_check_word(word, RECALIBRATORS, "recalibrator")]


def lens_named(word: str, classes: Mapping[str, object] | None = None) -> Named:
    """Return the lens of a word; refuse unknown words. `classes` maps the NAME of ``class=NAME`` to a class that is not text.

    >>> import truecal as tc
    >>> lens_named("class-wise").of(tc)
    ClassWise(weights=None)
    >>> lens_named("class=3", {"3": 3}).of(tc)
    OneClass(name=3)
    >>> lens_named("top-5").of(tc)
    TopK(k=5)
    """
    name = class_of(word)
    if name is not None:
        return Named("OneClass", arguments={"name": (classes or {}).get(name, name)})
    start, _, k = word.partition("-")
    if start == "top" and k.isdigit():
        return Named("TopK", arguments={"k": int(k)})
    word = "all-label" if word == "all-labels" else word
    return LENSES[_check_word(word, LENSES, "lens", also=("top-K", "class=NAME"))]


def class_of(word: str) -> str | None:
    """Return the NAME of a lens ``class=NAME``; None for other lenses.

    >>> class_of("class=dog"), class_of("top-label"), class_of("class=")
    ('dog', None, None)
    """
    name = word.removeprefix(_ONE_CLASS)
    return name if name and name != word else None


def word_of(name: str, words: Mapping[str, Named]) -> str:
    """Return the first word of a public name among `words`; the name itself if it has none.

    >>> word_of("SweepECE", ESTIMATORS)
    'sweep'
    """
    return next((word for word, named in words.items() if named.name == name), name)


def judges_answers(lens: str) -> bool:
    """Whether a lens, described in words, judges confidence in an answer and not the probability of a class.

    >>> judges_answers("top label"), judges_answers("class correct"), judges_answers("positive class")
    (True, True, False)
    """
    return lens.startswith("top") or lens == "class correct"


def tendency(lens: str, direction: float) -> str:
    """Name the sign of mean score minus frequency (`direction`) for a lens described in words; 0 counts as negative.

    >>> tendency("top label", 0.1), tendency("class malignant", -0.1)
    ('overconfident', 'predicted too low')
    """
    if judges_answers(lens):
        return "overconfident" if direction > 0 else "underconfident"
    return "predicted too high" if direction > 0 else "predicted too low"


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return the one or two nearest words as the end of a message; "" if none is near. Case is ignored.

    Near are words of a similarity of at least 0.7 in `difflib.get_close_matches`.

    >>> did_you_mean("confidense", ["confidence", "label"])
    "; did you mean 'confidence'?"
    """
    from difflib import get_close_matches  # imported on use: it takes longer to load than the search

    lower = {name.lower(): name for name in words}
    near = get_close_matches(str(word).lower(), lower, n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(repr(lower[name]) for name in near)}?" if near else ""


def _check_word(word: str, words: Mapping[str, Named], what: str, also: tuple[str, ...] = ()) -> str:
    """Return a word that is among `words`; refuse another as no `what`, listing them, those in `also`, and the nearest ones.

    >>> _check_word("swep", ESTIMATORS, "estimator")
    Traceback (most recent call last):
    truecal.errors.InputError: there is no estimator 'swep'; use rank-series, ... or isotonic; did you mean 'sweep'?
    """
    if word in words:
        return word
    listed = [*words, *also]
    raise InputError(
        f"there is no {what} {word!r}; use {', '.join(listed[:-1])} or {listed[-1]}{did_you_mean(word, words)}"
    )
