"""Kumar et al., section 3 and appendix C (Figures 2, 5, 6): the binned error of a Platt-scaled model grows with its bins."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from truecal.lab.papers.drawing import Figure, Line, banded, lines, panels
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.papers.kumar.grouped import TAIL, Grouped, Groups, mass_edges, platt, shuffled_parts, top_rows
from truecal.lab.trials.trials import Field, tidy
from truecal.lab.worlds.quadrature import Array

Scheme = Literal["mass", "width"]
BINS = (2, 5, 10, 15, 20, 30, 50, 100)
_LARGE = 25_000  # rows from which the split is that of ImageNet
Binned = tuple[Groups, Array, Array]  # the bin, score and outcome of every row
_BATCH = 50  # resamples at a time


def _shares(n: int) -> tuple[float, float, float]:
    """Rows to fit, to choose bins and to measure: (20000, 5000, 25000) of ImageNet, (1000, 1000, 8000) of CIFAR-10."""
    return (0.4, 0.1, 0.5) if n >= _LARGE else (0.1, 0.1, 0.8)


def binned_errors(name: str, norm: int, schemes: tuple[Scheme, ...]) -> Callable[[Setting], Experiment]:
    """Plug-in and debiased binned error by number of bins, with 90 % basic bootstrap intervals over m resamples.

    The basic interval [2 e - q(0.95), 2 e - q(0.05)] is the paper's: resampling adds to a binned error what sampling added to
    it, so that plain quantiles can exclude the estimate itself.
    """

    def make(setting: Setting) -> Experiment:
        rng = np.random.default_rng(setting.rng)
        c, y = top_rows(setting, name)
        fit, choose, judge = shuffled_parts(c.size, _shares(c.size), rng)
        shown = platt(c, y, fit)
        draws = [
            rng.multinomial(judge.size, np.full(judge.size, 1 / judge.size), k).astype(np.float64)
            for k in _batches(setting.m)
        ]
        rows: list[tuple[Field, ...]] = []
        for scheme in schemes:
            for bins in BINS:
                edges = np.arange(1, bins) / bins if scheme == "width" else mass_edges(shown[choose], bins)
                group = np.searchsorted(edges, shown[judge], side="left" if scheme == "width" else "right")
                rows += _rows(scheme, bins, (group, shown[judge], y[judge]), draws, norm)
        columns = ("scheme", "bins", "estimator", "n", "resamples", "error", "low_90", "high_90")
        table = tidy(columns, [(*row[:3], int(judge.size), setting.m, *row[3:]) for row in rows])

        def draw(figure: Figure) -> None:
            for axes, scheme in zip(panels(figure, len(schemes), columns=2), schemes, strict=True):
                curves: dict[str, Line] = {}
                for kind in ("plugin", "debiased"):
                    part = [r for r in table if (r["scheme"], r["estimator"]) == (scheme, kind)]
                    curves[kind] = banded(part, "bins", "error")
                lines(axes, curves, title=f"equal {scheme}", x="bins", y=f"binned l{norm} error", log_x=True)

        return Experiment(name, f"binned l{norm} error of a Platt-scaled model by number of bins", table, draw)

    return make


def _batches(m: int) -> list[int]:
    return [_BATCH] * (m // _BATCH) + ([m % _BATCH] if m % _BATCH else [])


def _rows(scheme: str, bins: int, data: Binned, draws: list[Array], norm: int) -> list[tuple[Field, ...]]:
    """Scheme, bins, estimator, error, low, high of both estimators."""

    def both(weights: Array) -> tuple[Array, Array]:
        grouped = Grouped.of(*data, weights)
        if norm == 1:
            return grouped.absolute()
        plugin, debiased = grouped.squared()
        return np.sqrt(np.maximum(plugin, 0.0)), np.sqrt(np.maximum(debiased, 0.0))

    whole = both(np.ones((1, data[1].size)))
    resampled = [both(weights) for weights in draws]
    rows: list[tuple[Field, ...]] = []
    for k, kind in enumerate(("plugin", "debiased")):
        error = float(whole[k][0])
        low, high = np.quantile(np.concatenate([part[k] for part in resampled]), [TAIL, 1 - TAIL])
        rows.append((scheme, bins, kind, error, max(2 * error - float(high), 0.0), 2 * error - float(low)))
    return rows


figure_2 = binned_errors("kumar-fig2", 2, ("mass",))
figure_5 = binned_errors("kumar-fig5", 1, ("mass", "width"))
figure_6 = binned_errors("kumar-fig6", 1, ("mass", "width"))
