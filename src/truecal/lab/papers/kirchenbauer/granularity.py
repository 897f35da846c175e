"""How fine bins may be (Kirchenbauer, Oaks & Heim 2022, appendix B): the full error, its spread, and what bins hold."""

import numpy as np

import truecal as tc
from truecal.frame import Frame
from truecal.lab.papers.data import the_network
from truecal.lab.papers.drawing import Figure, lines, panels
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.trials.trials import Field, tidy

GAMMAS = tuple(2.0**-k for k in range(1, 12))
_ROWS = (0.1, 0.5, 1.0)  # parts of the test rows in Figure 9
_COLUMNS = ("gamma", "rows", "resamples", "error", "sd", "least_in_bin", "median_in_bin", "most_in_bin")


def granularity(setting: Setting) -> Experiment:
    """Resamples of the test rows for every gamma. The paper: the error is stable about gamma = 2^-4."""
    preds = the_network(setting.data, "kirchenbauer-gamma").test.preds
    rows: list[tuple[Field, ...]] = []
    for part in _ROWS:
        size = round(part * len(preds))

        def drawn(k: int, size: int = size) -> tc.Predictions:
            return preds.take(setting.stream(size, k).integers(0, len(preds), size))

        for gamma in GAMMAS:
            judge = tc.GeneralizedECE(binning=tc.KDTree(gamma), level=None)
            words = f"full error, gamma {gamma:g}, {size} rows"
            values = setting.repeated(words, lambda k, judge=judge, drawn=drawn: [float(judge(drawn(k)))])  # type: ignore[misc]
            counts = np.asarray(getattr(judge(drawn(0)).vector_bins, "count"))  # noqa: B009 (the protocol names only what pages need)
            filled = counts[counts > 0]
            spread = float(values.std(ddof=1)) if setting.m > 1 else 0.0
            held = (float(filled.min()), float(np.median(filled)), float(filled.max()))
            rows.append((gamma, size, setting.m, float(values.mean()), spread, *held))
    table = tidy(_COLUMNS, rows)
    title = "Full calibration error against the fraction of a bin (G, appendix B)"
    return Experiment("kirchenbauer-gamma", title, table, lambda figure: _draw(figure, table))


def _draw(figure: Figure, table: Frame) -> None:
    error, held, spread = panels(figure, 3, share_y=False)
    sizes = sorted({int(row["rows"]) for row in table})
    whole = [row for row in table if row["rows"] == sizes[-1]]
    gammas = [row["gamma"] for row in whole]
    band = [row["sd"] for row in whole]
    lines(
        error,
        {"full": (gammas, [r["error"] for r in whole], band)},
        x="gamma",
        y="calibration error",
        title="Figure 7",
        log_x=True,
    )
    counts = {name: (gammas, [r[f"{name}_in_bin"] for r in whole]) for name in ("least", "median", "most")}
    lines(held, counts, x="gamma", y="rows in a bin", title="Figure 8", log_x=True)
    held.set_yscale("log")
    by_size = {f"{size} rows": (gammas, [r["sd"] for r in table if r["rows"] == size]) for size in sizes}
    lines(spread, by_size, x="gamma", y="standard deviation", title="Figure 9", log_x=True)
