"""Roelofs et al., section 5.4 and Figure 8: how well can miscalibration be detected at all?"""

from truecal.estimate import Estimator
from truecal.lab.papers.drawing import Figure, lines, panels
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.trials.batches import Cell
from truecal.lab.trials.detection import NULL_PER_REAL, detect, power_curve
from truecal.lab.trials.estimators import EM_SWEEP, EW, RANK_SERIES
from truecal.lab.trials.measures import Value
from truecal.lab.trials.trials import Field, tidy
from truecal.lab.worlds.score_distributions import Uniform
from truecal.lab.worlds.world import World

ALPHA = 0.05
SIZES = (500, 2000, 10_000)
ERRORS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08, 0.12)


def figure_8(setting: Setting, *, n: tuple[int, ...] = SIZES, errors: tuple[float, ...] = ERRORS) -> Experiment:
    """Chance of missing a miscalibration c^d of uniform scores, at type I error 5 %, by its size, for three estimators.

    The critical value of each is the 95 % quantile of its estimates over 4 m calibrated datasets of the same size.
    """
    m = setting.m
    estimators: dict[str, Estimator] = {"EW": EW, "EMsweep": EM_SWEEP, "RankSeries": RANK_SERIES}
    questions = tuple(Value(e) for e in estimators.values())
    curves = {e: power_curve(e) for e in errors}
    worlds = {0.0: World(Uniform())} | {e: World(Uniform(), curve) for e, curve in curves.items()}
    cells = [
        Cell(f"TCE {error:g}", world, size, m if error else NULL_PER_REAL * m, questions)
        for size in n
        for error, world in worlds.items()
    ]
    answers = {(cell.n, cell.name): results for cell, results in zip(cells, setting.answers(cells), strict=True)}
    rows: list[tuple[Field, ...]] = []
    for size in n:
        for k, name in enumerate(estimators):
            calibrated = answers[size, "TCE 0"][k][0]
            for error in errors:
                results = detect(calibrated, answers[size, f"TCE {error:g}"][k][0], ALPHA)
                assert results.critical is not None
                rates = (results.rate, results.standard_error, 1 - results.rate)
                rows.append((name, size, error, curves[error].d, m, *rates, results.critical))
    columns = ("estimator", "n", "true_error", "d", "m", "power", "power_se", "miss_rate", "critical_value")
    table = tidy(columns, rows)

    def draw(figure: Figure) -> None:
        for axes, size in zip(panels(figure, len(n)), n, strict=True):
            drawn = {}
            for name in estimators:
                part = [r for r in table if (r["estimator"], r["n"]) == (name, size)]
                drawn[name] = ([100 * float(r["true_error"]) for r in part], [float(r["miss_rate"]) for r in part])
            lines(axes, drawn, title=f"n = {size}", x="true error (%)", y="chance to miss it", log_x=True)

    return Experiment("roelofs-fig8", "type II error at type I error 5 %", table, draw)
