"""Delays of `tc.Watch` beside probcal's e-process on the same rows: `python -m tests.watch.probcal 20` (needs `probcal`).

Both promise that a calibrated model ever raises the alarm with probability at most 5 %, so they are compared at equal control;
probcal has no tolerance, and a watch is given none.
"""

import sys

import numpy as np

import truecal as tc
from tests.watch.simulate import CHANGES

BEFORE, AFTER, ROWS = 50, 200, 300
NAMES = ("watch", "probcal", "probcal, window of 10")


def delays(scores: str, change: str, seed: int) -> list[int]:
    """Batches from the change to the alarm of each, AFTER + 1 where there is none, 0 where it came before."""
    rng = np.random.default_rng([seed, 31])
    watch = tc.Watch(tolerance=0.0)
    from probcal.monitor import CalibrationMonitor

    monitors = [CalibrationMonitor(), CalibrationMonitor(plug_in_window=10)]
    first = [AFTER + 1] * 3
    for look in range(1, BEFORE + AFTER + 1):
        p = rng.random(ROWS) if scores == "uniform" else np.clip(rng.beta(2.8, 0.05, ROWS), 1e-6, 1 - 1e-6)
        truth = p if look <= BEFORE else CHANGES[change](p, look - BEFORE)
        y = (rng.random(ROWS) < truth).astype(int)
        raised = [watch.update(tc.Predictions.from_probs(p, y)).alarm]
        raised += [monitor.update(y, p, label=str(look)).alarm for monitor in monitors]
        for i, alarm in enumerate(raised):
            if alarm:
                first[i] = min(first[i], max(look - BEFORE, 0))
        if all(raised):
            break
    return first


def main(streams: int) -> None:
    for scores in ("uniform", "skewed"):
        for change in CHANGES:
            found = np.array([delays(scores, change, seed) for seed in range(streams)])
            shown = [np.median(when[when > 0]) for when in found.T]
            early = (found == 0).sum(axis=0)
            line = " | ".join(
                f"{name} {'never' if median > AFTER else f'{median:.0f}'}"
                for name, median in zip(NAMES, shown, strict=True)
            )
            print(f"{scores} | {change} | {line} | alarms before the change {early.tolist()} of {streams}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
