"""A study of large prediction files: everything against reading, softmax and one np.sort per lens of the same sizes."""

import tempfile
import time
from pathlib import Path

import numpy as np

import truecal as tc
from benchmarks.speed.harness import Row, peak_bytes, seconds_together
from truecal.study.metrics import GRID, metrics_of

MODELS, ROWS, CLASSES = 2, 50_000, 1000  # few, because the promise is per model: 200 take a hundred times as long
LENSES = ("top-label", "all-label", "class-wise")
STUDY = """\
name: speed
predictions:
  - {files: "%s.npz", dataset: drawn}
columns: {label: labels, logits: logits}
lenses: [top-label, all-label, class-wise]
workers: 1
"""


def written(folder: Path) -> Path:
    """Prediction files, a study of all of them, and one of the first alone."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, ROWS)
    for model in range(MODELS):
        logits = rng.standard_normal((ROWS, CLASSES), np.float32)
        logits[np.arange(ROWS), labels] += 1 + model / MODELS
        np.savez(folder / f"m{model}.npz", logits=logits, labels=labels)
    (folder / "one.yaml").write_text(STUDY.replace("%s.npz", "{model}0.npz"))
    (folder / "study.yaml").write_text(STUDY % "{model}")
    return folder / "study.yaml"


def floor(path: Path) -> None:
    """Read, softmax, and sort what each lens sorts; nothing else."""
    for file in sorted(path.parent.glob("*.npz")):
        with np.load(file) as arrays:
            logits, _ = arrays["logits"].astype(np.float64), arrays["labels"]
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        np.sort(logits.max(axis=1))
        np.sort(logits.ravel())
        np.sort(np.ascontiguousarray(logits.T), axis=1)


def peak_mib(path: Path) -> float:
    """Highest resident memory of a process that runs the study, above what it loads."""
    run = f"tc.study.Study.read({str(path)!r}).run({str(path.with_suffix('.peak'))!r})"
    return peak_bytes("import truecal as tc", run) / 2**20


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        path = written(Path(name))
        study = tc.study.Study.read(path)
        runs = iter(range(100))

        def whole() -> object:
            return study.run(path.with_name(f"store{next(runs)}"))

        tc.study.Study.read(path.with_name("one.yaml")).run(
            path.with_name("first")
        )  # scipy and polars load on first use
        lower_bound, ours = seconds_together(lambda: floor(path), whole, repeat=2, clock=time.process_time)
        one, all_of_them = peak_mib(path.with_name("one.yaml")), peak_mib(path)
    numbers = len(metrics_of((GRID,), "")) + sum(len(metrics_of((GRID,), lens)) for lens in LENSES)
    size = f"{ROWS} x {CLASSES}, {MODELS} models"
    return [
        Row(f"read, softmax and sort per lens, {size}", lower_bound, 1.0, "itself"),
        Row(
            f"study of {size}, {numbers} numbers each, 1 process",
            ours,
            ours / lower_bound,
            "read, softmax and sort",
            2.5,
        ),
        Row(f"  its peak memory ({all_of_them:.0f} MiB)", ours, all_of_them / one, "that of a study of one model", 1.1),
    ]
