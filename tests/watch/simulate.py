"""Streams of batches by the hundred, for the statements about false alarms and delays.

`python -m tests.watch.simulate` runs the full counts (tens of minutes on one core) and prints the tables of docs/watch.md; the
tests run a small part of them.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

import truecal as tc
from truecal.watch.e_processes import LOCAL, Experts, UnitRows, edges, starting_weight, unspent_weight

Truth = Callable[[np.ndarray, int], np.ndarray]  # scores and number of the batch -> probability of the outcome 1
_FEW = 300  # rows of a batch up to which they are drawn one by one, and float32 is exact enough for their sums
_MOST = 40.0  # log of what an expert wins in a batch
_STEPS = 1 << 14  # of a distribution of scores, when rows are drawn one by one
SCORES = ("uniform", "skewed", "rare", "tied")
Curve = Callable[[np.ndarray, int], np.ndarray]  # scores and number of batches since the change
CHANGES: dict[str, Curve] = {
    "5 points down": lambda c, _: np.maximum(c - 0.05, 0.0),
    "5 points up": lambda c, _: np.minimum(c + 0.05, 1.0),
    "above 0.9 down by 5 points": lambda c, _: np.where(c > 0.9, c - 0.05, c),
    "slope 0.7 in log odds": lambda c, _: 1 / (1 + ((1 - c) / np.maximum(c, 1e-12)) ** 0.7),
    "drift: 5 points down in 100 days": lambda c, k: np.maximum(c - 0.05 * min(k / 100, 1.0), 0.0),
}


def support(scores: str) -> tuple[np.ndarray, np.ndarray]:
    """Shares and mean scores of the cells of a distribution of scores."""
    rng = np.random.default_rng(0)
    size = 400_000
    c = {
        "uniform": lambda: rng.random(size),
        "skewed": lambda: rng.beta(2.8, 0.05, size),
        "rare": lambda: rng.beta(0.3, 12, size),
        "tied": lambda: rng.choice([0.05, 0.3, 0.7, 0.9, 0.99], size),
    }[scores]()
    position = np.searchsorted(edges(), c, side="right") - 1
    rows, total = np.bincount(position, minlength=len(edges())), np.bincount(position, c, len(edges()))
    filled = rows > 0
    return rows[filled] / size, total[filled] / rows[filled]


@dataclass(frozen=True)
class Run:
    """First batch with an alarm in every stream, one more than `looks` where there is none; logs of the last e-values."""

    ever: np.ndarray
    changed: np.ndarray
    daily: np.ndarray  # of a z-test of every batch at alpha / looks (Bonferroni), against the edge of the band
    looks: int


def simulate(
    scores: str,
    rows: int,
    tolerance: float,
    truth: Truth,
    *,
    streams: int,
    looks: int,
    seed: int = 0,
    alpha: float = 0.05,
    run_length: int = 1000,
    groups: int = 1,
) -> Run:
    """Watch `streams` independent streams; with `groups`, so many streams are one family, whose first call (of "ever") is noted."""
    share, mean = support(scores)
    rng = np.random.default_rng(seed)
    many = streams * groups
    table = Table(Experts.of(tolerance, share * rows, mean), mean, np.float32 if rows <= _FEW else np.float64)
    ever = np.zeros((table.experts, many), table.kind)
    change = ever.copy()
    never = looks + 1
    first = {name: np.full(streams, never) for name in ("ever", "changed", "daily")}
    for look in range(1, looks + 1):
        n, ones = _drawn(rng, rows, share, truth(mean, look), many)
        won, entry = table.play(n, ones)
        e_values = table.after(ever, won, entry * starting_weight(look)) + unspent_weight(look)
        raised = {"ever": _called(np.log(e_values).reshape(streams, groups), -np.log(alpha))}
        if groups == 1:
            raised["daily"] = _daily(n, ones, mean, tolerance, alpha / looks)
            raised["changed"] = table.after(change, won, entry) >= run_length
        for name, alarm in raised.items():
            first[name] = np.where((first[name] == never) & alarm, look, first[name])
    return Run(first["ever"], first["changed"], first["daily"], looks)


class Table:
    """The bets of one kind of scores for many streams at once. Evidence is kept as it is, not as logarithms, and capped where an
    alarm was raised long before."""

    def __init__(self, experts: Experts, mean: np.ndarray, kind: type = np.float64) -> None:
        bets, self.kind, self.experts = experts.bets(mean), kind, len(experts.prior)
        self.prior = np.exp(experts.prior).astype(kind)[:, None]
        self.everywhere, tilts = int((experts.kinds != "local").sum()), len(LOCAL)
        runs = [(int(row.argmax()), int(row.argmax() + row.sum())) for row in experts.spans]
        position = {run: self.everywhere + tilts * i for i, run in enumerate(runs)}
        # What a run of bins wins is the product of what its parts win: (run, part, part), shorter ones first.
        self.joined = [
            tuple(slice(position[run], position[run] + tilts) for run in ((i, end), (i, middle), (middle, end)))
            for i, end in sorted(runs, key=lambda run: run[1] - run[0])
            for middle in [max((m for m in range(i + 1, end) if {(i, m), (m, end)} <= set(position)), default=end)]
            if middle < end
        ]
        # Cells are in the order of their scores, so those of a bin are neighbours.
        ends = np.searchsorted(experts.bin_of(mean), np.arange(len(experts.cuts) + 2))
        bins = [(slice(*ends[b : b + 2]), position[b, b + 1]) for b in range(len(ends) - 1) if (b, b + 1) in position]
        self.bins = [(cells, slice(points, points + tilts)) for cells, points in bins]
        self.tilt, self.cost, self.apart = (np.ascontiguousarray(values.T, kind) for values in bets)
        self.within = experts.tolerance > 0

    def play(self, n: np.ndarray, ones: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What every expert won in every stream, and its share at entry, (experts, streams); n and ones are (streams, cells)."""
        n, ones = (np.ascontiguousarray(part.T, self.kind) for part in (-n, ones))
        won = self._factors((ones, self.tilt), (n, self.cost))
        if not self.within:
            return won, self.prior
        return won, 2 * self.prior / (1 + self._factors((n, self.apart)))

    def after(self, held: np.ndarray, won: np.ndarray, entry: np.ndarray) -> np.ndarray:
        """Add a start and play the batch, in place; the sum over experts."""
        held += entry
        held *= won
        np.minimum(held, 1e10, out=held)
        return np.asarray(held.sum(axis=0))

    def _factors(self, *parts: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """exp of the sum of all products values @ rows, at most exp(40): an alarm by far, and its square fits into float32."""
        factors = np.zeros((self.experts, parts[0][0].shape[1]), self.kind)
        for rows, values in parts:
            factors[: self.everywhere] += values[: self.everywhere] @ rows
            for cells, local in self.bins:
                factors[local] += values[local, cells] @ rows[cells]
        for alone in (slice(self.everywhere), *(local for _, local in self.bins)):
            np.exp(np.minimum(factors[alone], _MOST), out=factors[alone])
        for run, first, second in self.joined:
            np.minimum(factors[first] * factors[second], np.exp(_MOST), out=factors[run])
        return factors


def _drawn(rng: np.random.Generator, rows: int, share: np.ndarray, truth: np.ndarray, many: int) -> tuple:
    """Rows and outcomes 1 in every cell, (many, cells)."""
    if rows > _FEW:
        n = rng.multinomial(rows, share, size=many)
        return n.astype(np.float64), rng.binomial(n, np.broadcast_to(truth, n.shape)).astype(np.float64)
    position = _ladder(share.tobytes())[rng.integers(0, _STEPS, (many, rows))]
    hit = rng.random((many, rows), np.float32) < truth.astype(np.float32)[position]
    position += len(share) * np.arange(many)[:, None]
    missed, ones = np.bincount((2 * position + hit).ravel(), minlength=2 * many * len(share)).reshape(many, -1, 2).T
    return (missed + ones).T.astype(np.float32), ones.T.astype(np.float32)


@lru_cache(maxsize=4)
def _ladder(share: bytes) -> np.ndarray:
    """The cell of every step of a distribution, whose shares are given as bytes."""
    reached = np.cumsum(np.frombuffer(share))
    return np.minimum(np.searchsorted(reached, (np.arange(_STEPS) + 0.5) / _STEPS), len(reached) - 1)


def _called(logs: np.ndarray, limit: float) -> np.ndarray:
    """Whether any group is called: equal shares, the k-th largest against 1 / (alpha k)."""
    groups = logs.shape[1]
    sorted_logs = -np.sort(-logs, axis=1) - np.log(groups)
    return (sorted_logs >= limit - np.log(np.arange(1, groups + 1))).any(axis=1)


def _daily(n: np.ndarray, ones: np.ndarray, mean: np.ndarray, tolerance: float, level: float) -> np.ndarray:
    """The mean outcome of a batch against either edge of the band, with the variance there and the normal approximation."""
    from scipy.stats import norm

    beyond = []
    for side in (-1, 1):
        edge = np.clip(mean + side * tolerance, 0, 1)
        noise = np.sqrt(np.maximum(n @ (edge * (1 - edge)), 1e-9))
        beyond.append(side * (ones.sum(axis=1) - n @ edge) / noise)
    return np.maximum(*beyond) > norm.isf(level / 2)


def false_alarms(streams: int, looks: int, sizes: tuple[int, ...], kinds: tuple[str, ...]) -> None:
    """Models within the tolerance: how many streams ever raise an alarm."""
    edge: dict[str, tuple[float, Truth]] = {
        "tolerance 0, calibrated": (0.0, lambda c, _: c),
        "0.02, calibrated": (0.02, lambda c, _: c),
        "0.02, at the upper edge": (0.02, lambda c, _: np.minimum(c + 0.02, 1)),
        "0.02, at the lower edge": (0.02, lambda c, _: np.maximum(c - 0.02, 0)),
    }
    for rows, scores, (name, (tolerance, truth)) in product(sizes, kinds, edge.items()):
        if rows != 300 and name == "0.02, calibrated":
            continue  # the easiest case: shown once
        run = simulate(scores, rows, tolerance, truth, streams=streams, looks=looks, seed=7)
        ever, change, daily = (int((getattr(run, kind) <= looks).sum()) for kind in ("ever", "changed", "daily"))
        print(f"{rows} | {scores} | {name} | {ever} | {change} | {daily} of {streams}", flush=True)


def delays(streams: int) -> None:
    """Median number of batches from a change to the alarm, of streams without a false one."""
    before, after = 50, 200
    for scores in ("uniform", "skewed"):
        for change, curve in CHANGES.items():
            for tolerance in (0.0, 0.01, 0.02):

                def truth(c: np.ndarray, look: int, curve: Curve = curve) -> np.ndarray:
                    return c if look <= before else curve(c, look - before)

                run = simulate(scores, 300, tolerance, truth, streams=streams, looks=before + after, seed=3)
                values = [getattr(run, kind) for kind in ("ever", "changed", "daily")]
                medians = [np.median(when[when > before] - before) for when in values]
                mask = " | ".join("never" if m > after else f"{m:g}" for m in medians)
                print(f"{scores} | {change} | {tolerance:g} | {mask}", flush=True)


def fastest(streams: int, run_length: int = 1000) -> None:
    """The delay of a detector that knows the change: it plays the likelihood ratio of the true curve against the nearest edge of
    the band, summed over starting times (Pollak and Tartakovsky 2009: of all detectors the least delay, summed over all starts).

    Twice: with the run length as its limit, which is proven to suffice, and with the smaller limit whose mean run length at the
    edge of the band is just the one asked for, found by simulation. Before the change the model is calibrated.
    """
    for scores, change, tolerance in product(("uniform", "skewed"), list(CHANGES)[:4], (0.0, 0.01, 0.02)):
        share, mean = support(scores)
        rng = np.random.default_rng(9)
        truth = np.clip(CHANGES[change](mean, 0), 1e-12, 1 - 1e-12)
        edge = np.clip(np.clip(truth, mean - tolerance, mean + tolerance), 1e-12, 1 - 1e-12)
        won, missing = np.log(truth / edge), np.log((1 - truth) / (1 - edge))
        ratios = []  # of batches at the edge, calibrated and changed
        for of in (edge, mean, truth):
            n, ones = _drawn(rng, 300, share, of, 8000)
            ratios.append(np.exp(np.maximum(ones @ won + (n - ones) @ missing, -600)))
        limits = 2.0 ** np.arange(3, np.log2(run_length), 0.25)
        lengths = _first(rng, np.zeros(streams), ratios[0], limits, 20 * run_length).mean(axis=0)
        exact = float(np.exp(np.interp(np.log(run_length), np.log(lengths), np.log(limits))))
        begun = np.zeros(4000)
        for _ in range(50):
            begun = (begun + 1) * rng.choice(ratios[1], len(begun))
        result = _first(rng, begun, ratios[2], np.array([run_length, exact]), 500)
        print(f"{scores} | {change} | {tolerance:g} | evidence a day {np.log(ratios[2]).mean():.2f} |", end=" ")
        values = [f"median {np.median(when):g}, mean {when.mean():.1f}" for when in result.T]
        print(f"limit {run_length}: {values[0]} | limit {exact:.0f}: {values[1]}", flush=True)


def _first(rng: np.random.Generator, held: np.ndarray, ratios: np.ndarray, limits: np.ndarray, most: int) -> np.ndarray:
    """The first batch at which the sum over starting times reaches each limit, (streams, limits); `most` where none does."""
    first = np.full((len(held), len(limits)), most)
    for look in range(1, most):
        held = np.minimum((held + 1) * rng.choice(ratios, len(held)), 1e9)
        first = np.where((first == most) & (held[:, None] >= limits), look, first)
        if (first < most).all():
            break
    return first


def families(count: int, looks: int, kinds: tuple[str, ...] = SCORES) -> None:
    """Fifty groups within the tolerance: how often any of them is ever called."""
    edge: dict[str, tuple[float, Truth]] = {
        "tolerance 0, calibrated": (0.0, lambda c, _: c),
        "0.02, at the upper edge": (0.02, lambda c, _: np.minimum(c + 0.02, 1)),
    }
    for (name, (tolerance, truth)), scores in product(edge.items(), kinds):
        called = 0
        for part in range(0, count, 20):
            run = simulate(scores, 50, tolerance, truth, streams=20, looks=looks, groups=50, seed=100 + part)
            called += int((run.ever <= looks).sum())
        print(f"50 groups | {scores} | {name} | any false call in {called} of {count} families", flush=True)


def clusters(streams: int, looks: int, kinds: tuple[str, ...] = SCORES) -> None:
    """Ten units of ten rows, whose outcomes come from one uniform variable each: how many streams ever raise an alarm."""
    cases: dict[str, tuple[float, float, bool]] = {
        "tolerance 0, calibrated": (0.0, 0.0, True),
        "0.02, at the upper edge": (0.02, 0.02, True),
        "0.02, at the lower edge": (0.02, -0.02, True),
        "tolerance 0, calibrated, taken as rows": (0.0, 0.0, False),
    }
    for scores, (name, case) in product(kinds, cases.items()):
        alarms = _clustered(scores, streams, looks, *case)
        print(f"10 clusters of 10 | {looks} looks | {scores} | {name} | {alarms} of {streams}", flush=True)


def _clustered(scores: str, streams: int, looks: int, tolerance: float, off: float, together: bool) -> int:
    """Streams with an alarm; scores are the mean scores of cells, whose gains are looked up."""
    from scipy.sparse import csr_array

    units, size = 10, 10
    share, mean = support(scores)
    experts, rng = Experts.of(tolerance, share * units * size, mean), np.random.default_rng(11)
    table = Table(experts, mean)
    alone = np.arange(len(mean))
    played = [experts.play_rows(UnitRows(mean, np.full(len(mean), y), alone)) for y in (0.0, 1.0)]
    gained, apart = (np.concatenate([part[i] for part in played]).astype(np.float32) for i in (0, 1))
    ever, alarm = np.zeros((table.experts, streams)), np.zeros(streams, bool)
    for look in range(1, looks + 1):
        cell = rng.choice(len(mean), (streams, units, size), p=share)
        y = (rng.random((streams, units, 1)) < mean[cell] + off).astype(int)
        if together:
            # A row is a cell with or without the outcome; all units together are one sparse matrix of ten rows each.
            cells = cell + len(mean) * y
            parts = np.full(cells.size, 1 / size, np.float32), cells.ravel(), np.arange(0, cells.size + 1, size)
            rows = csr_array(parts, shape=(streams * units, len(gained)))
            won = (1 + rows @ gained).reshape(streams, units, -1).prod(axis=1).T
            loss = (rows @ apart).reshape(streams, units, -1).sum(axis=1) if tolerance else np.zeros(1, np.float32)
            entry = np.exp(experts.enter(won, loss).log_entry).T.reshape(table.experts, -1)
        else:
            flat = cell.reshape(streams, -1) + len(mean) * np.arange(streams)[:, None]
            n = np.bincount(flat.ravel(), minlength=streams * len(mean)).reshape(streams, -1)
            ones = np.bincount(flat.ravel(), y.ravel(), streams * len(mean)).reshape(streams, -1)
            won, entry = table.play(n, ones)
        alarm |= table.after(ever, won, entry * starting_weight(look)) + unspent_weight(look) >= 20
    return int(alarm.sum())


def advised(streams: int) -> None:
    """Ten good days and fifteen bad ones of 300 rows, tolerance 0.01: alarms, the estimated start and the advice."""
    kinds: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "odds halved (an offset)": lambda c: c / (c + 2 * (1 - c)),
        "slope 0.5 in log odds": lambda c: 1 / (1 + ((1 - c) / np.maximum(c, 1e-12)) ** 0.5),
        "0.15 too low between 0.4 and 0.6": lambda c: np.where((c > 0.4) & (c < 0.6), c + 0.15, c),
    }
    rng = np.random.default_rng(12)
    for name, curve in kinds.items():
        steps = []
        for _ in range(streams):
            watch = tc.Watch(tolerance=0.01)
            for day in range(1, 26):
                p = rng.beta(2, 1, 300)
                step = watch.update(tc.Predictions.from_probs(p, rng.random(300) < (p if day <= 10 else curve(p))))
            steps.append(step)
        values = [step for step in steps if step.alarm]
        off = np.array([int(step.since) - 11 for step in values])
        offsets = sum(step.advice == "offset suffices" for step in values)
        near = np.mean(np.abs(off) <= 2)
        print(
            f"{name} | {len(values)} of {streams} | start within 2 days {near:.2f} | offset advised {offsets}",
            flush=True,
        )


if __name__ == "__main__":
    options = sys.argv[1:] or ["delays", "fastest", "families", "false", "clusters", "advice"]
    scores_wanted = tuple(kind for kind in SCORES if kind in options) or SCORES
    rows_wanted = tuple(int(word) for word in options if word.isdigit()) or (300, 50, 5000)
    if "clusters" in options:
        clusters(200, 1000, scores_wanted)
    if "advice" in options:
        advised(30)
    if "delays" in options:
        delays(200)
    if "fastest" in options:
        fastest(500)
    if "families" in options:
        families(200, 1000, scores_wanted)
    if "false" in options:
        false_alarms(200, 1000, rows_wanted, scores_wanted)
