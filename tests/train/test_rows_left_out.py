"""Targets of -100, logits of one column, streams in state_dict, and lenses of the log."""

import pytest

import truecal as tc
from tests.lazy import Lazy

torch = Lazy("torch")
train = Lazy("truecal.train")


def batch(binary: bool):
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(40, generator=rng) if binary else torch.randn(40, 3, generator=rng)
    targets = torch.randint(0, 2 if binary else 3, (40,), generator=rng)
    out = torch.arange(40) % 4 == 0
    return logits, targets, torch.where(out, -100, targets), ~out


LOSSES = {
    "cross entropy": lambda *a, **o: train.cross_entropy(*a, **o),
    "smoothed": lambda *a, **o: train.smoothed_cross_entropy(*a, smoothing=0.1, **o),
    "focal": lambda *a, **o: train.focal_loss(*a, gamma=2, **o),
    "flsd-53": lambda *a, **o: train.focal_loss(*a, gamma="flsd-53", **o),
}


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_ignored_rows_do_not_count(loss, binary, weighted):
    logits, targets, ignored, selected = batch(binary)
    weight = torch.tensor([0.5, 2.0] if binary else [0.5, 2.0, 1.0]) if weighted else None
    for reduction in ("mean", "sum"):
        result = LOSSES[loss](logits, ignored, weight=weight, reduction=reduction)
        alone = LOSSES[loss](logits[selected], targets[selected], weight=weight, reduction=reduction)
        assert result.item() == pytest.approx(alone.item(), rel=1e-6)
    each = LOSSES[loss](logits, ignored, weight=weight, reduction="none")
    assert (each[~selected] == 0).all()
    assert (each[selected] > 0).all()


def test_ignored_rows_in_penalties_and_the_log():
    logits, targets, ignored, selected = batch(False)
    for penalty in (train.mmce, train.soft_binned_error):
        assert penalty(logits, ignored).item() == pytest.approx(penalty(logits[selected], targets[selected]).item())
    log = train.CalibrationLog()
    log.update(logits, ignored)
    log.update(logits, torch.full((40,), -100))
    log.end_epoch()
    assert log.rows[0]["n"] == int(selected.sum())
    with pytest.raises(tc.InputError, match="without a label"):
        train.Mixup(1.0, classes=3)(torch.rand(40, 2), ignored)


def test_one_column_of_logits_is_refused():
    for targets in (torch.ones(5, 1), torch.ones(5, dtype=torch.long)):
        with pytest.raises(tc.InputError, match="squeeze"):
            train.cross_entropy(torch.zeros(5, 1), targets)


def test_a_resumed_run_goes_on_with_the_same_blends():
    x, y = torch.rand(8, 3), torch.arange(8) % 2
    first = train.Mixup(0.4, classes=2, seed=1)
    first(x, y)
    selected = first.state_dict()
    expected = first(x, y)[0]
    again = train.Mixup(0.4, classes=2, seed=7)
    again.load_state_dict(selected)
    assert torch.equal(again(x, y)[0], expected)


def test_the_log_takes_a_lens():
    logits, targets, _, _ = batch(False)
    log = train.CalibrationLog(lens=tc.OneClass(1))
    log.update(logits, targets)
    result = log.end_epoch()
    preds = tc.Predictions.from_logits(logits.double().numpy(), targets.numpy())
    assert result.value == pytest.approx(tc.measure(preds, lens=tc.OneClass(1)).value, abs=1e-3)
