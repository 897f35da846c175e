"""Planted segments found by `audit` and by MCGrad's multicalibration error at the same rate of false finds.

Needs `mcgrad` beside numpy, scipy and pandas: `python -m tests.groups.mcgrad 60`. MCGrad gives a statistic (sigma) per segment
and no family-wise level, so its limit is a quantile of the largest statistic of 150 calibrated datasets of the same kind: that of
5 % false finds, which an audit at level 0.95 has by construction. A segment counts as found if it is beyond the limit and shares at
least 0.8 of its rows with the planted one: the first, or any. A second number is the first seed.
"""

import sys

import numpy as np
import pandas as pd

import truecal as tc
from tests.groups.simulate import LEVELS, overlap, planted

ROWS, DEPTH, SMALLEST = 10_000, 2, 50
FALSE, CALIBRATED = 0.05, 150


def sigmas(preds: tc.Predictions) -> tuple[np.ndarray, np.ndarray]:
    """MCGrad's statistic of every segment, and the rows of each in the order of `preds`."""
    from mcgrad.metrics import MulticalibrationError

    names = list(preds.columns)
    frame = pd.DataFrame({"p": preds.probs, "y": preds.labels, **preds.columns})
    result = MulticalibrationError(
        frame,
        "y",
        "p",
        categorical_segment_columns=names,
        max_depth=DEPTH,
        max_values_per_segment_feature=LEVELS,
        min_samples_per_segment=SMALLEST,
        max_n_segments=None,
        precision_dtype="float64",
    )
    statistic = np.asarray(result.segments_ecce_sigma)
    masks = result._segments[0].reshape(-1, len(preds))[: len(statistic)]
    back = np.argsort(result.df["index"].to_numpy(), kind="stable")
    return statistic, masks[:, back]


def main(datasets: int, first: int = 0) -> None:
    limits: dict[int, float] = {}
    for depth, shift in ((2, 0.1), (2, 0.15), (1, 0.1)):
        if depth not in limits:
            calibrated = [planted(depth, 0.05, 1000 + seed, ROWS, 0.0)[0] for seed in range(CALIBRATED)]
            limits[depth] = float(np.quantile([sigmas(preds)[0].max() for preds in calibrated], 1 - FALSE))
        limit = limits[depth]
        counts = {"audit, first": 0, "audit, any": 0, "MCGrad, largest": 0, "MCGrad, any": 0}
        for seed in range(first, first + datasets):
            preds, inside, _ = planted(depth, 0.05, seed, ROWS, shift)
            shares = [overlap(s.mask(preds), inside) for s in tc.audit(preds, depth=DEPTH, min_rows=SMALLEST).segments]
            counts["audit, first"] += bool(shares) and shares[0] >= 0.8
            counts["audit, any"] += max(shares, default=0) >= 0.8
            statistic, masks = sigmas(preds)
            beyond = np.flatnonzero(statistic > limit)
            theirs = [overlap(masks[i], inside) for i in beyond[np.argsort(-statistic[beyond])]]
            counts["MCGrad, largest"] += bool(theirs) and theirs[0] >= 0.8
            counts["MCGrad, any"] += max(theirs, default=0) >= 0.8
        print(
            f"depth {depth}, 5 % of {ROWS} rows, off by {shift:g}, limit {limit:.2f}: {counts} of {datasets}",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
