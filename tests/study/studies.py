"""Small studies on disk for the tests."""

import numpy as np

CLASSES = 3


def drawn(rng, labels, *, sharp=1.5, signal=1.5):
    logits = rng.normal(size=(len(labels), CLASSES))
    logits[np.arange(len(labels)), labels] += signal
    return logits * sharp


def write_files(folder, *, models=("mlp", "tree"), datasets=("digits",), severities=(0,), seeds=(0,), rows=120):
    """runs/{dataset}/{model}-{severity}-{seed}.npz, one set of labels per dataset and seed."""
    for d, dataset in enumerate(datasets):
        (folder / "runs" / dataset).mkdir(parents=True, exist_ok=True)
        for seed in seeds:
            labels = np.random.default_rng((7, d, seed)).integers(0, CLASSES, rows)
            for m, model in enumerate(models):
                for severity in severities:
                    rng = np.random.default_rng((d, m, severity, seed))
                    logits = drawn(rng, labels, sharp=1 + m, signal=2 - 0.2 * severity)
                    np.savez(folder / "runs" / dataset / f"{model}-{severity}-{seed}.npz", logits=logits, labels=labels)


STUDY = """\
name: a small study
predictions:
  - files: "runs/{dataset}/{model}-{severity}-{seed}.npz"
columns: {label: labels, logits: logits}
"""


def write_study(folder, more="", text=STUDY):
    path = folder / "study.yaml"
    path.write_text(text + more)
    return path
