"""Files to read, and a way to run the command line inside the test."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from truecal.cli.main import main


@dataclass
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def truecal(capsys):
    """Run `truecal` with arguments; what it printed and its exit code."""

    def run(*arguments: object) -> Ran:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


def binary_frame(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 0.7, n)
    return pl.DataFrame(
        {
            "y": (rng.random(n) < p**1.6).astype(np.int64),
            "p": p,
            "site": rng.choice(["north", "south"], n),
            "patient": np.arange(n) // 4,
            "w": rng.integers(1, 3, n),
        }
    )


def class_frame(n=400, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3)) * 2
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    calm = np.exp(0.6 * logits)
    labels = ((calm / calm.sum(axis=1, keepdims=True)).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    names = np.array(["cat", "dog", "fox"])
    columns = {f"p_{name}": probs[:, k] for k, name in enumerate(names)}
    return pl.DataFrame({"label": names[labels], **columns, **{f"z_{k}": logits[:, k] for k in range(3)}})


@pytest.fixture
def binary_csv(tmp_path):
    path = tmp_path / "binary.csv"
    binary_frame().write_csv(path)
    return path


@pytest.fixture
def class_parquet(tmp_path):
    path = tmp_path / "classes.parquet"
    class_frame().write_parquet(path)
    return path
