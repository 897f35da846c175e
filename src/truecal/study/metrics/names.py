"""Names of metrics in a study, and the grid of paper M.

    ece-width-15-l1     ece-<width|mass>-<bins>-<l1|l2|max>     the binned error (max: the largest gap)
    debiased-15-l2      debiased-<bins>-<l1|l2>                 the same without its sampling bias (Kumar et al.), equal mass
    exact-15-l2         exact-<bins>-l2                         the same by the exact bias of Minderer et al., eq. 5
    sweep-mass-l1       sweep-<width|mass>-<l1|l2|max>          bins as many as monotonicity allows
    rank-series-l2      rank-series-<l1|l2>                     truecal's default
    nearest-l2          nearest-<l1|l2>                         sliding windows
    nll, brier, error, confidence                               of whole predictions: no lens
    brier-top                                                   the Brier score of the confidence: what the bias of bins hangs on
    aurc                                                        area under the risk-coverage curve
    abstain-0.2-0.1     abstain-<rate>-<cost ratio>             cost per row of not answering the least confident 20 %

Minderer et al. speak of 28 metric variants (schemes, bins, norms, top-label, all-label, class-wise) without listing them. The
grid holds the whole product over bins from 5 to 100, of which any such 28 are a part, with the scores and our estimators.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import truecal as tc
from truecal import names as vocabulary
from truecal.errors import InputError
from truecal.estimate import Estimator

GRID = "paper-grid"
GRID_BINS = (5, 10, 15, 20, 50, 100)
SCORES = ("nll", "brier", "brier-top", "error", "confidence")
_MOST_BINS = 100_000
_PATTERN = re.compile(
    r"(?P<ece>ece)-(?P<ece_scheme>width|mass)-(?P<ece_bins>[0-9]+)-(?P<ece_norm>l1|l2|max)"
    r"|(?P<debiased>debiased)-(?P<debiased_bins>[0-9]+)-(?P<debiased_norm>l1|l2)"
    r"|(?P<exact>exact)-(?P<exact_bins>[0-9]+)-(?P<exact_norm>l2)"
    r"|(?P<sweep>sweep)-(?P<sweep_scheme>width|mass)-(?P<sweep_norm>l1|l2|max)"
    r"|(?P<rank>rank-series)-(?P<rank_norm>l1|l2)"
    r"|(?P<nearest>nearest)-(?P<nearest_norm>l1|l2)"
)
_ABSTAIN = re.compile(r"abstain-(0(?:\.[0-9]+)?|1)-(0(?:\.[0-9]+)?|1)")
_KINDS = ("ece", "debiased", "exact", "sweep", "rank", "nearest")


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric by its parts, one object per name (see `parse_metric`). `kind` "score" is a mean over whole predictions."""

    name: str
    kind: str
    scheme: str | None = None
    bins: int | None = None
    norm: float | None = None
    rate: float | None = None
    cost: float | None = None

    @property
    def whole(self) -> bool:
        """Whether it judges whole predictions, without a lens."""
        return self.kind in ("score", "abstaining")

    @property
    def by_formula(self) -> bool:
        """Whether its interval costs nothing."""
        return self.kind == "rank"

    @cache  # noqa: B019 (metrics are few, and small)
    def estimator(self, level: float = 0.95) -> Estimator:
        """The estimator behind it (not for scores); `level` matters to those with an interval of their own."""
        options: dict[str, Any] = {"norm": self.norm}
        if self.kind == "ece":
            return tc.BinnedECE(bins=self.bins, scheme=self.scheme, **options)  # type: ignore[arg-type]
        if self.kind in ("debiased", "exact"):
            correction: Any = "exact" if self.kind == "exact" else "kumar"
            return tc.DebiasedECE(bins=self.bins, correction=correction, **options)
        if self.kind == "sweep":
            return tc.SweepECE(scheme=self.scheme, **options)  # type: ignore[arg-type]
        return tc.RankSeries(level=level, **options) if self.kind == "rank" else tc.NearestECE(**options)


@cache
def parse_metric(name: str) -> Metric:
    """The metric of a name.

    >>> metric = parse_metric("ece-mass-100-l2")
    >>> metric.kind, metric.scheme, metric.bins, metric.norm
    ('ece', 'mass', 100, 2.0)
    """
    if name in SCORES:
        return Metric(name, "score")
    if name == "aurc":
        return Metric(name, "abstaining")
    if abstain := _ABSTAIN.fullmatch(name):
        return Metric(name, "abstaining", rate=float(abstain[1]), cost=float(abstain[2]))
    match = _PATTERN.fullmatch(name)
    if match is None:
        raise InputError(
            f"there is no metric {name!r}; use {GRID}, {', '.join(SCORES)}, or a name such as ece-width-15-l1, debiased-15-l2, "
            "exact-15-l2, sweep-mass-l1, rank-series-l2, nearest-l2, aurc, abstain-0.2-0.1"
        )
    parts = match.groupdict()
    kind = next(kind for kind in _KINDS if parts[kind])
    bins = parts.get(f"{kind}_bins")
    if bins is not None and not 1 <= int(bins) <= _MOST_BINS:
        raise InputError(f"{name!r} asks for {bins} bins; use from 1 to {_MOST_BINS}")
    scheme = parts.get(f"{kind}_scheme") or ("mass" if kind in ("debiased", "exact") else None)
    return Metric(name, kind, scheme, None if bins is None else int(bins), vocabulary.NORMS[str(parts[f"{kind}_norm"])])


def metrics_of(names: tuple[str, ...], lens: str) -> tuple[Metric, ...]:
    """What is computed under a lens ("" for whole predictions) when these names are asked for.

    >>> len(metrics_of(("paper-grid",), "top-label")), len(metrics_of(("paper-grid",), "class-wise"))
    (42, 38)
    >>> [m.name for m in metrics_of(("rank-series-l2", "nll"), "")]
    ['nll']
    """
    expanded = [one for name in names for one in (_grid(lens) if name == GRID else (name,))]
    metrics = [parse_metric(name) for name in dict.fromkeys(expanded)]
    return tuple(metric for metric in metrics if metric.whole == (lens == ""))


def _grid(lens: str) -> tuple[str, ...]:
    """The grid under a lens.

    The sweep and the rank series look at a dataset longer than it took to sort it. In the grid they judge the lenses on one
    outcome per row; to have them everywhere, ask for them by name.
    """
    if lens == "":
        return SCORES
    binned = tuple(f"ece-{s}-{b}-{p}" for s in ("width", "mass") for b in GRID_BINS for p in vocabulary.NORMS)
    both = (*binned, "debiased-15-l1", "debiased-15-l2")
    if lens == "class-wise":
        return both
    swept = (*both, "sweep-mass-l1", "sweep-mass-l2")
    return swept if lens == "all-label" else (*swept, "exact-15-l2", "rank-series-l2")
