"""False finds and planted segments by the hundred, for the statements of docs/audit.md.

`python -m tests.groups.simulate false skewed 200` counts calibrated datasets with any find; `... planted 40` plants segments
of 1 and 5 % of 1e5 rows at depth 1 to 3 and looks for them with `audit` and, in the first of them, with `subgroups` of every
column, Holm; `... limits 200` asks how often limits hold. A last number is the first seed. `... cost 1000000` tells CPU seconds and
memory of rows and `... cost 100000 scan` of a scan that is grouped by all eight columns.
"""

import resource
import sys
import time

import numpy as np
from scipy.special import ndtr

import truecal as tc

COLUMNS, LEVELS = 8, 5
SINGLE = 10  # datasets of planted segments that `subgroups` is asked about as well


def scores(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Scores of n rows: Beta(2, 2), nine tied ones, or skewed towards 0 or (very much) towards 1."""
    if kind == "ties":
        return rng.integers(1, 10, n) / 10
    shapes = {"rare": (0.3, 6.0), "skewed": (2.8, 0.05)}
    return rng.beta(*shapes.get(kind, (2.0, 2.0)), n)


def calibrated(kind: str, seed: int, n: int) -> tc.Predictions:
    """Calibrated rows; "clusters" come in tens that share two columns, outcomes correlated by 0.5 on the normal scale."""
    rng = np.random.default_rng([seed, 22])
    columns = {f"c{j}": rng.integers(0, LEVELS, n) for j in range(COLUMNS)}
    p, clusters = scores(kind, rng, n), None
    labels = rng.random(n) < p
    if kind == "clusters":
        clusters = np.repeat(np.arange(n // 10), 10)
        columns |= {name: columns[name][clusters] for name in ("c0", "c1")}
        labels = ndtr(np.sqrt(0.5) * (rng.normal(size=n)[clusters] + rng.normal(size=n))) < p
    return tc.Predictions.from_probs(p, labels.astype(int), columns=columns, clusters=clusters)


def planted(depth: int, share: float, seed: int, n: int = 100_000, shift: float = 0.1):
    """Scores from Beta(2, 2) and columns of five values; one segment of the given depth holds about `share` of the rows and has
    outcomes rarer than its scores by `shift` (never below 0). Rows, which of them are inside, and true rates."""
    rng = np.random.default_rng([seed, depth, round(1000 * share), 23])
    bad, others = share ** (1 / depth), np.full(LEVELS - 1, (1 - share ** (1 / depth)) / (LEVELS - 1))
    uneven = rng.choice(COLUMNS, depth, replace=False)
    columns = {}
    for j in range(COLUMNS):
        chance = np.concatenate([[bad], others]) if j in uneven else np.full(LEVELS, 1 / LEVELS)
        columns[f"c{j}"] = rng.choice(LEVELS, n, p=chance)
    inside = np.all([columns[f"c{j}"] == 0 for j in uneven], axis=0)
    p = rng.beta(2, 2, n)
    truth = np.where(inside, np.maximum(p - shift, 0), p)
    return tc.Predictions.from_probs(p, (rng.random(n) < truth).astype(int), columns=columns), inside, truth


def overlap(found: np.ndarray, inside: np.ndarray) -> float:
    """Rows in both over rows in either."""
    return float((found & inside).sum() / (found | inside).sum())


def by_column(preds: tc.Predictions, inside: np.ndarray, alpha: float = 0.05) -> float:
    """The best overlap of a subgroup flagged by `subgroups` of each column (family-wise within it), over the columns by Holm."""
    groups = {name: tc.subgroups(preds, by=name) for name in preds.columns}
    best = 0.0
    for i, name in enumerate(sorted(groups, key=lambda name: np.nanmin(groups[name].adjusted))):
        limit = alpha / (len(groups) - i)
        flagged = [v for v, p in zip(groups[name].names, groups[name].adjusted, strict=True) if p <= limit]
        if not flagged:
            break
        best = max([best, *(overlap(preds.columns[name].astype(str) == value, inside) for value in flagged)])
    return best


def false_finds(kind: str, datasets: int, first: int = 0, n: int = 8000) -> None:
    """How many calibrated datasets, with seeds from `first` on, have any find."""
    finds = sum(bool(tc.audit(calibrated(kind, first + seed, n)).segments) for seed in range(datasets))
    print(
        f"{kind}: any find in {finds} of {datasets} calibrated datasets of {n} rows, seeds from {first} on", flush=True
    )


def power(datasets: int, first: int = 0) -> None:
    """Finds with an overlap of at least 0.8 of any segment listed, exact ones, and how often limits of the first hold its truth."""
    for share in (0.01, 0.05):
        for depth in (1, 2, 3):
            hits = exact = single = covered = listed = 0
            start = time.process_time()
            for seed in range(first, first + datasets):
                preds, inside, truth = planted(depth, share, seed)
                segments = tc.audit(preds).segments
                shares = [overlap(segment.mask(preds), inside) for segment in segments]
                hits += max(shares, default=0) >= 0.8
                exact += max(shares, default=0) == 1
                single += seed < first + SINGLE and by_column(preds, inside) >= 0.8
                if segments and segments[0].region == "all scores":
                    rows = segments[0].mask(preds)
                    listed += 1
                    covered += segments[0].low <= (preds.probs - truth)[rows].mean() <= segments[0].high
            spent = (time.process_time() - start) / datasets
            print(
                f"share {share:g}, depth {depth}: audit {hits} of {datasets} (exactly {exact}), "
                f"subgroups {single} of {min(SINGLE, datasets)}; "
                f"limits of the first hold {covered} of {listed}; {spent:.1f} s each",
                flush=True,
            )


def limits(datasets: int, first: int = 0) -> None:
    """How often limits of the first segment hold its truth: 5 % of 8000 rows off by 0.2, depth 1, 2 and 3 in turn."""
    covered = listed = 0
    for seed in range(first, first + datasets):
        preds, _, truth = planted(1 + (seed - first) % 3, 0.05, seed, 8000, 0.2)
        segments = tc.audit(preds).segments
        if segments and segments[0].region == "all scores":
            rows = segments[0].mask(preds)
            listed += 1
            covered += segments[0].low <= (preds.probs - truth)[rows].mean() <= segments[0].high
    print(f"limits of the first segment hold {covered} of {listed} listed in {datasets} datasets", flush=True)


def cost(n: int, scan: bool) -> None:
    """CPU seconds and peak memory of an audit of n rows with a planted pair."""
    preds, *_ = planted(2, 0.02, 4, n)
    start = time.process_time()
    data: tc.Predictions | tc.engines.Scan = preds
    if scan:
        import polars as pl

        frame = pl.LazyFrame({"p": preds.probs, "y": preds.labels, **preds.columns})
        data = tc.scan(frame, label="y", score="p", by=list(preds.columns))
        print(f"scan into {len(data.sketches):,} groups: {time.process_time() - start:.1f} s", flush=True)
        start = time.process_time()
    tc.audit(data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"audit of {n:,} rows: {time.process_time() - start:.1f} s, {peak:.2f} GiB", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "false":
        false_finds(sys.argv[2], *map(int, sys.argv[3:]))
    elif sys.argv[1] == "cost":
        cost(int(sys.argv[2]), "scan" in sys.argv)
    elif sys.argv[1] == "limits":
        limits(*map(int, sys.argv[2:]))
    else:
        power(*map(int, sys.argv[2:]))
