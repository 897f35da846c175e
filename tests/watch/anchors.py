"""Delays of a watch beside other monitors at equal control: `python -m tests.watch.anchors uniform 50` (`probcal`, `river` needed).

All may raise an alarm in 5 % of calibrated streams of 150 batches at most. A watch at tolerance 0 and probcal's e-process promise
that (for ever). A z-test of every batch is given the limit that holds it in as many calibrated streams as are compared, which a
user does not have; ADWIN on the residuals of rows keeps its default delta, or has the largest smaller one of a grid that holds it.
"""

import sys

import numpy as np

import truecal as tc
from tests.watch.simulate import CHANGES
from truecal.watch.e_processes import Batch, Stream

BEFORE, AFTER, ROWS, ALPHA = 20, 130, 300, 0.05
DELTAS = (2e-3, 2e-4, 2e-5, 2e-6, 2e-8)
NEVER = BEFORE + AFTER + 1


def stream_of(scores: str, change: str | None, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Scores and outcomes of every batch; without a change all are calibrated."""
    rng = np.random.default_rng([seed, change is None, 31])
    batches = []
    for look in range(1, NEVER):
        p = rng.random(ROWS) if scores == "uniform" else rng.beta(2.8, 0.05, ROWS)
        p = np.clip(p, 1e-6, 1 - 1e-6)  # probcal takes log odds
        truth = p if change is None or look <= BEFORE else CHANGES[change](p, look - BEFORE)
        batches.append((p, (rng.random(ROWS) < truth).astype(int)))
    return batches


def watched(batches: list[tuple[np.ndarray, np.ndarray]]) -> tuple[int, int]:
    """First batch with an alarm, and with a sign of change at run length 1000."""
    stream, ever, changed = None, NEVER, NEVER
    for look, (p, y) in enumerate(batches, 1):
        batch = Batch.from_sketch(tc.Sketch.from_arrays(p, y))
        stream = (stream or Stream.beginning(0.0, batch)).after(batch)
        ever = min(ever, look) if stream.evidence.log_e >= -np.log(ALPHA) else ever
        changed = min(changed, look) if stream.evidence.log_change >= np.log(1000) else changed
        if ever < NEVER and changed < NEVER:
            break
    return ever, changed


def probcal(batches: list[tuple[np.ndarray, np.ndarray]]) -> int:
    """With a plug-in from the last ten batches: sooner than its default, which takes all of them and half a minute a stream."""
    from probcal.monitor import CalibrationMonitor

    monitor = CalibrationMonitor(plug_in_window=10)
    result = (look for look, (p, y) in enumerate(batches, 1) if monitor.update(y, p, label=str(look)).alarm)
    return next(result, NEVER)


def adwin(batches: list[tuple[np.ndarray, np.ndarray]], delta: float) -> int:
    """Rows one by one, residuals taken to [0, 1]; an alarm counts for the batch it comes in."""
    from river.drift import ADWIN

    detector = ADWIN(delta=delta)
    for look, (p, y) in enumerate(batches, 1):
        for residual in ((y - p + 1) / 2).tolist():
            detector.update(residual)
            if detector.drift_detected:
                return look
    return NEVER


def daily(batches: list[tuple[np.ndarray, np.ndarray]], limit: float) -> int:
    """A z-test of the mean of every batch."""
    mask = (look for look, (p, y) in enumerate(batches, 1) if _z(p, y) > limit)
    return next(mask, NEVER)


def _z(p: np.ndarray, y: np.ndarray) -> float:
    return float(abs((y - p).sum()) / np.sqrt((p * (1 - p)).sum()))


def main(scores: str, streams: int) -> None:
    calibrated = [stream_of(scores, None, seed) for seed in range(streams)]
    limit = float(
        np.quantile([max(_z(p, y) for p, y in batches) for batches in calibrated], 1 - ALPHA, method="higher")
    )
    delta = next(d for d in DELTAS if sum(adwin(b, d) < NEVER for b in calibrated) <= ALPHA * streams)
    print(f"{scores}: limit of daily z {limit:.2f}, delta of ADWIN {delta:g}, {streams} streams each", flush=True)
    for change in (None, *CHANGES):
        values: dict[str, list[int]] = {}
        for seed in range(streams):
            batches = calibrated[seed] if change is None else stream_of(scores, change, seed)
            ever, changed = watched(batches)
            times = {"watch": ever, "watch, changed": changed, "probcal": probcal(batches)}
            times |= {"ADWIN": adwin(batches, delta), "daily z": daily(batches, limit)}
            for name, when in times.items():
                values.setdefault(name, []).append(when)
        results = []
        for name, times_of in values.items():
            when = np.array(times_of)
            if change is None:
                results.append(f"{name} {(when < NEVER).sum()}")
                continue
            median = np.median(when[when > BEFORE] - BEFORE)
            results.append(f"{name} {'never' if median > AFTER else f'{median:g}'}")
        print(f"{scores} | {change or 'no change: alarms'} | {' | '.join(results)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
