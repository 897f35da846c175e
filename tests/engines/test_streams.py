"""Streams: the accumulator and the torchmetrics metric, against calibration_error and against what others get wrong."""

import copy
import pickle
import sys
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecal as tc
from tests.engines.engines import need
from tests.engines.test_scan import wide
from tests.engines.worlds import draw
from tests.profile.test_sketch import same
from truecal.engines import Accumulator
from truecal.profile import Sketch

BATCHES = st.lists(st.integers(0, 30_000), max_size=5)


@given(BATCHES, st.integers(0, 100))
def test_batches_of_any_size_are_the_sketch_of_all_rows(sizes, seed):
    c, y = draw("float32", sum(sizes) + 3, seed)
    acc = Accumulator()
    for rows in np.split(np.arange(len(c)), np.cumsum(sizes)):
        acc.update(y[rows], c[rows])
    assert acc.rows == len(c)
    same(acc.sketch, Sketch.from_arrays(c, y))


def test_compute_equals_calibration_error_and_more_batches_may_follow():
    c, y = draw("saturated", 6000, 0)
    acc = Accumulator()
    for end in (2000, 6000):
        acc.update(y[end - 2000 : end], c[end - 2000 : end])
        if end == 6000:
            acc.update(y[2000:4000], c[2000:4000])
        rows = np.r_[0:end]
        result, exact = acc.compute(), tc.calibration_error(y[rows], c[rows])
        assert abs(result.value - exact.value) <= result.sketch_error
        assert (result.n, result.lens) == (exact.n, exact.lens)
        assert result.interval.high == pytest.approx(exact.interval.high, abs=1e-4)
    assert repr(acc) == "Accumulator(6000 rows, positive class)"


def test_workers_merge(tmp_path):
    c, y = draw("uniform", 9000, 1)
    workers = [Accumulator() for _ in range(3)]
    for i, worker in enumerate(workers):
        worker.update(y[i::3], c[i::3])
    workers[2].save(tmp_path / "third.npz")
    joined = Accumulator().merge(workers[0]).merge(workers[1]).merge(Sketch.load(tmp_path / "third.npz"))
    same(joined.sketch, Sketch.from_arrays(c, y))
    assert workers[0].rows == 3000
    joined.reset()
    assert joined.rows == 0


def test_top_label_one_class_weights_and_names():
    probs, labels = wide()
    preds = tc.Predictions.from_probs(probs, labels)
    for lens in (tc.TopLabel(), tc.OneClass(2)):
        acc = Accumulator(lens=lens)
        for rows in np.array_split(np.arange(2000), 7):
            acc.update(labels[rows], probs[rows])
        profile = lens(preds)
        same(acc.sketch, Sketch.from_arrays(profile.scores[0], profile.outcomes[0]))
    c, y = draw("rare", 500, 0)
    w = np.linspace(0.5, 2, 500)
    weighted = Accumulator()
    weighted.update(y[:100], c[:100], sample_weight=w[:100])
    weighted.update(y[100:], c[100:], sample_weight=w[100:])
    same(weighted.sketch, Sketch.from_arrays(c, y, w))
    named = Accumulator(classes=["no", "yes"])
    named.update(np.array(["no", "yes"])[y], c)
    same(named.sketch, Sketch.from_arrays(c, y))


def test_refusals():
    acc = Accumulator()
    acc.update([1, 0], [0.5, 0.25])
    with pytest.raises(tc.InputError, match="do not mix"):
        acc.update([0], [[0.5, 0.25, 0.25]])
    with pytest.raises(tc.InputError, match="logits"):
        acc.update([1, 0], [2.5, -3.0])
    with pytest.raises(tc.InputError, match="not ClassWise"):
        Accumulator(lens=tc.ClassWise())
    with pytest.raises(tc.InputError, match="empty"):
        Accumulator().compute()
    top = Accumulator()
    top.update([0], [[0.5, 0.25, 0.25]])
    with pytest.raises(tc.InputError, match="cannot be added"):
        acc.merge(top)
    for empty in (([], [0.5, 0.25]), ([1, 0], [])):
        with pytest.raises(tc.InputError):
            acc.update(*empty)
        with pytest.raises(tc.InputError):
            Sketch().update(*empty)
    acc.update([], [])
    assert acc.rows == 2  # what was refused left no trace


def test_only_accumulators_of_one_kind_merge():
    positive = Accumulator()
    positive.update([1, 0], [0.5, 0.25])
    with pytest.raises(tc.InputError, match="'class 0' of 2 classes and the other 'positive class' of 2 classes"):
        Accumulator(lens=tc.OneClass(0)).merge(positive)
    assert Accumulator(lens=tc.OneClass(1)).merge(positive).rows == 2  # the same under another name
    three, five = Accumulator(), Accumulator()
    three.update([0], [[0.5, 0.25, 0.25]])
    with pytest.raises(tc.InputError, match=r"of 3 classes and this one as .* of 5 classes; do not mix"):
        three.update([0], [[0.2] * 5])
    five.update([0], [[0.2] * 5])
    with pytest.raises(tc.InputError, match="cannot be added"):
        three.merge(five)
    first, second = (Accumulator(classes=names) for names in (["no", "yes"], ["yes", "no"]))
    first.update(["no"], [0.5])
    second.update(["no"], [0.5])
    with pytest.raises(tc.InputError, match=r"2 classes: no, yes and the other .*: yes, no"):
        first.merge(second)


def test_threads_lose_no_row():
    c, y = draw("uniform", 16_000, 5)
    acc, sketch = Accumulator(), Sketch()
    parts = np.array_split(np.arange(16_000), 320)

    def count(which):
        for rows in parts[which::8]:
            acc.update(y[rows], c[rows])
            sketch.update(c[rows], y[rows])

    threads = [Thread(target=count, args=(i,)) for i in range(8)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    whole = Sketch.from_arrays(c, y)
    same(acc.sketch, whole)
    same(sketch, whole)


def test_workers_can_send_what_they_counted():
    c, y = draw("uniform", 3000, 6)
    acc = Accumulator()
    acc.update(y, c)
    sent = pickle.loads(pickle.dumps(acc))
    acc.update(y, c)
    sent.update(y[:10], c[:10])
    assert (acc.rows, sent.rows) == (6000, 3010)
    same(pickle.loads(pickle.dumps(acc.sketch)), acc.sketch)
    same(copy.deepcopy(acc.sketch), acc.sketch)


def test_the_state_stays_below_two_mebibytes():
    rng = np.random.default_rng(0)
    acc = Accumulator()
    for _ in range(20):
        c = 10.0 ** rng.uniform(-20, 0, 20_000)
        acc.update(rng.integers(0, 2, 20_000), np.where(rng.random(20_000) < 0.5, c, 1 - c))
    assert acc.nbytes < 2**21
    acc.update([1], [0.5], sample_weight=[0.5])
    assert acc.nbytes < 2**21


def test_right_for_more_float32_rows_than_float32_can_count():
    """2**24 + 2**23 equal rows: a float32 counter stops at 2**24."""
    many = 2**24 + 2**23
    acc = Accumulator()
    c, y = np.full(2**19, 0.7, np.float32), (np.arange(2**19) % 2).astype(np.uint8)
    for _ in range(many // 2**19):
        acc.update(y, c)
    est = tc.BinnedECE()(acc.sketch)
    assert est.n == many
    assert est.value == pytest.approx(float(np.float32(0.7)) - 0.5, abs=1e-12)


@pytest.fixture
def torch():
    need("torch")
    need("torchmetrics")
    import torch

    return torch


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
class TestMetric:
    def metric(self, **options):
        from truecal.engines.torch_metric import CalibrationMetric

        return CalibrationMetric(**options)

    @pytest.mark.parametrize("kind", ["float64", "float32", "float16", "bfloat16"])
    def test_every_floating_type_is_read_as_it_is(self, torch, kind):
        c, y = draw("uniform", 70_000, 2)
        scores = torch.from_numpy(c).to(getattr(torch, kind))
        metric = self.metric(estimator=tc.BinnedECE())
        for start in range(0, 70_000, 7000):
            metric.update(scores[start : start + 7000], torch.from_numpy(y[start : start + 7000]).long())
        same_type = scores.float() if kind == "bfloat16" else scores  # numpy has no bfloat16
        exact = tc.BinnedECE()(tc.profile.Profile.from_arrays(same_type.numpy(), y))
        assert metric.estimate().n == 70_000
        assert abs(float(metric.compute()) - exact.value) <= metric.estimate().sketch_error

    def test_torchmetrics_is_wrong_where_this_is_right(self, torch):
        """66,000 float16 rows: summed in float16, their number is infinite and the error zero."""
        from torchmetrics.classification import BinaryCalibrationError

        scores = torch.full((66_000,), 0.75, dtype=torch.float16)
        target = torch.zeros(66_000, dtype=torch.long)
        theirs = BinaryCalibrationError(n_bins=15)
        theirs.update(scores, target)
        ours = self.metric(estimator=tc.BinnedECE())
        ours.update(scores, target)
        assert float(ours.compute()) == pytest.approx(0.75, abs=1e-12)
        assert not abs(float(theirs.compute()) - 0.75) <= 0.1  # 0 or nan, depending on the release

    def test_state_adds_across_processes_by_its_reductions(self, torch):
        c, y = draw("saturated", 6000, 3)
        parts = [self.metric() for _ in range(2)]
        for i, part in enumerate(parts):
            part.update(torch.from_numpy(c[i::2]), torch.from_numpy(y[i::2]).long())
        joined = self.metric()
        for name, reduce in joined._reductions.items():
            setattr(joined, name, reduce(torch.stack([getattr(part, name) for part in parts])))
        same(joined.sketch, Sketch.from_arrays(c, y))

    def test_reset_clone_and_batch_values(self, torch):
        c, y = draw("uniform", 1000, 4)
        metric = self.metric(estimator=tc.BinnedECE())
        batch = metric(torch.from_numpy(c), torch.from_numpy(y).long())
        assert float(batch) == tc.BinnedECE()(Sketch.from_arrays(c, y)).value
        twin = metric.clone()
        twin.update(torch.from_numpy(c), torch.from_numpy(y).long())
        assert (twin.sketch.rows, metric.sketch.rows) == (2000, 1000)
        metric.reset()
        assert metric.sketch.rows == 0

    def test_logits_are_refused(self, torch):
        with pytest.raises(tc.InputError, match="logits"):
            self.metric().update(torch.tensor([3.0, -2.0]), torch.tensor([1, 0]))
