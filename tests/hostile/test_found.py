"""What longer runs of `make hostile` found: damaged files of every kind of damage, and arguments no one expects."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest

import truecal as tc
from truecal.errors import TruecalError

Y, P = np.arange(40) % 2, np.linspace(0.1, 0.9, 40)


def test_zip_archives_damaged_in_ways_of_their_own_are_refused(tmp_path):
    """Bytes of the packed data, the version needed and the flags of a password: each ends in another error of Python's."""
    good = io.BytesIO()
    np.savez_compressed(good, **{name: np.random.default_rng(0).random(400) for name in ("probs", "labels")})
    raw = good.getvalue()
    directory = raw.index(b"PK\x01\x02")
    changes = {
        60: b"\xff\xff\xff",
        300: b"\x00\x11\x22",
        directory + 6: b"\x99",
        directory + 8: b"\x41",
        directory + 10: b"\x63",
    }
    for place, other in changes.items():
        damaged = bytearray(raw)
        damaged[place : place + len(other)] = other
        path = tmp_path / "p.npz"
        path.write_bytes(damaged)
        for read in (tc.read, tc.Sketch.load, tc.Profile.load):
            with pytest.raises(TruecalError):
                read(path)
    assert zipfile.is_zipfile(io.BytesIO(raw))


@pytest.mark.parametrize("column", [[[0.2, 0.8], 0.5], [{"a": 0.2, "b": 0.8}, 0.5]])
def test_rows_that_are_no_lists_or_mappings_are_named(column):
    with pytest.raises(TruecalError, match=r"row 1 is 0\.5"):
        tc.Predictions.from_frame(pd.DataFrame({"y": [0, 1], "p": column}), label="y", probs="p")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tc.read("a" * 1000), "there is no file"),
        (lambda: tc.scan((), label="y"), "no file is named"),
        (lambda: tc.uncertainty.hosmer_lemeshow(tc.Profile.from_arrays(P, Y), bins=10**30), "bins must be at most"),
        (lambda: tc.DirichletCalibration(intercept=None).fit(np.c_[1 - P, P], Y), "intercept must be a number"),
        (lambda: tc.censoring_weights(P, Y, horizon=10**30), "nobody was followed"),
        (lambda: tc.lab.coverage_atlas(n=np.array([])), "an atlas needs sizes"),
        (lambda: tc.uncertainty.compare(Y, P, P, names=np.full(2, np.nan)), "names must be a list of texts"),
        (lambda: tc.AdaptiveECE(bins=10**30), "bins must be at most"),
        (lambda: tc.net_benefit(tc.Predictions.from_probs(P, Y), np.array(3)), "strictly between 0 and 1"),
        (
            lambda: tc.lab.power(tc.BinnedECE(), tc.lab.World(tc.lab.Uniform(), tc.lab.Power(2)), m=10**30),
            "m must be at most",
        ),
        (lambda: tc.train.Mixup(classes=3, seed=10**30), "seed must be at most"),
        (lambda: tc.by_column("site", np.nan), "selected by a number or text, not nan; for missing values say where="),
        (lambda: tc.by_column("site", P), r"selected by a number or text, not array"),
        (
            lambda: tc.sample_size_by_simulation(P * 1e-200, widths={"oe": 0.2}),
            "fewer than 20 events in 10,000,000 rows",
        ),
        (lambda: tc.lab.World(tc.lab.Uniform()).true_error(norm="2"), "norm must be a number, not '2'"),
        (
            lambda: tc.lab.TopLabelWorld(tc.lab.World(tc.lab.Uniform(0.6, 1.0)), classes=float("nan")),
            "classes must be a whole number of at least 2, not nan",
        ),
        (lambda: tc.lab.World(tc.lab.Uniform(), int), "the curve must turn an array of scores"),
        (lambda: tc.study.covariate_trend(P, "size"), "ndarray is not a data frame"),
        (lambda: tc.study.pareto(pd.DataFrame({"model": ["a"]}), metrics=P), "metrics must be a list of texts"),
        (lambda: tc.read("a.csv", logits=memoryview(np.eye(2))), "logits must be text or a list of texts"),
        (lambda: tc.study.points(pd.DataFrame({"model": ["a"]}), ["error", 3]), "metrics must be a list of texts"),
    ],
)
def test_arguments_no_one_expects_are_refused(call, words):
    with pytest.raises(TruecalError, match=words):
        call()


def test_a_local_regression_reaches_rows_that_are_all_equally_far():
    """Every score 0 or 1: between them the rows within reach lie at its very end, where the kernel vanishes."""
    p = np.repeat([0.0, 1.0], [15, 5])
    y = np.arange(20) % 5 == 0
    curve = tc.flexible_curve(tc.Predictions.from_probs(p, y), kind="loess", at=[0.0, 0.2, 0.5])
    assert curve.outcome[:2].tolist() == pytest.approx([3 / 15, 3 / 15])
    assert np.isfinite(curve.outcome).all()


def test_an_array_for_a_number_of_a_study_is_refused(tmp_path):
    from tools.hostile.kills import make_study

    store = tc.study.Study.read(make_study(tmp_path, 1)).run(tmp_path / "store", workers=1)
    assert str(tc.study.rank(store.frame(), severity=0)) == str(tc.study.rank(store.frame()))
    with pytest.raises(TruecalError, match="severity must be a number"):
        tc.study.predictions_of(store, "m0", "d", severity=P)


def test_a_whole_number_beyond_64_bits_is_a_temperature():
    torch = pytest.importorskip("torch")
    logits, targets = torch.tensor(np.random.default_rng(0).normal(size=(20, 3))), torch.arange(20) % 3
    whole, real = (tc.train.soft_binned_error(logits, targets, temperature=t) for t in (10**30, 1e30))
    assert float(whole) == float(real)
    whole, real = (tc.train.focal_loss(logits, targets, gamma=gamma) for gamma in (10**30, 1e30))
    assert float(whole) == float(real)
