"""The log of calibration per epoch, and that torch is asked for only when it is used."""

import pytest

import truecal as tc
from tests.lazy import Lazy

torch = Lazy("torch")


def epoch(seed, scale, binary):
    rng = torch.Generator().manual_seed(seed)
    for _ in range(6):
        if binary:
            z = 2 * torch.randn(500, generator=rng)
            yield z * scale, torch.rand(500, generator=rng) < z.sigmoid()
        else:
            z = 2 * torch.randn(500, 4, generator=rng)
            yield z * scale, torch.multinomial(z.softmax(1), 1, generator=rng).squeeze(1)


@pytest.mark.parametrize("binary", [False, True])
def test_each_epoch_is_what_the_whole_batch_gives(binary):
    log = tc.train.CalibrationLog(estimator=tc.BinnedECE())
    size = None
    for number, scale in enumerate((1.0, 3.0)):
        batches = list(epoch(number, scale, binary))
        for z, t in batches:
            log.update(z.half() if number else z, t)
        result = log.end_epoch()
        z = torch.cat([b[0].half().float() if number else b[0] for b in batches]).double()
        t = torch.cat([b[1] for b in batches])
        probs = z.sigmoid() if binary else z.softmax(1)
        direct = tc.calibration_error(t.numpy(), probs.numpy(), estimator=tc.BinnedECE())
        assert result.value == pytest.approx(direct.value, abs=2e-3)
        right = (probs >= 0.5) == t if binary else probs.argmax(1) == t
        assert log.rows[-1]["accuracy"] == pytest.approx(right.double().mean().item(), abs=1e-12)
        assert log.rows[-1]["n"] == 3000
        size = size or log._accumulator.nbytes
        assert log._accumulator.nbytes == size < 2**21
    assert log.frame()["epoch"].tolist() == [1, 2]
    assert log.frame()["error"][1] > 2 * log.frame()["error"][0]


def test_no_gradient_and_no_prediction_is_kept():
    log = tc.train.CalibrationLog()
    z = torch.randn(8, 3, requires_grad=True)
    log.update(z, torch.zeros(8, dtype=torch.long))
    values = [value for value in vars(log).values() if isinstance(value, torch.Tensor)]
    assert not values
    assert z.grad is None


def test_mistakes_are_named():
    log = tc.train.CalibrationLog()
    with pytest.raises(tc.InputError, match="there was no batch"):
        log.end_epoch()
    with pytest.raises(tc.InputError, match="not soft labels"):
        log.update(torch.zeros(2, 3), torch.full((2, 3), 1 / 3))


def test_importing_the_package_never_loads_torch(processes):
    ran = processes.python("import sys, truecal as tc; dir(tc); tc.calibration_error; print('torch' in sys.modules)")
    assert ran.stdout.strip() == "False", ran.stderr


@pytest.mark.parametrize("use", ["tc.train.focal_loss", "from truecal.train import mixup", "tc.train.Mixup"])
def test_without_torch_the_error_says_how_to_install_it(processes, use):
    ran = processes.python(f"import sys; sys.modules['torch'] = None; import truecal as tc; print('in'); {use}")
    assert ran.stdout == "in\n"
    assert "this needs torch; install it with: pip install 'truecal[torch]'" in ran.stderr.splitlines()[-1]
    assert "MissingExtraError" in ran.stderr


def test_every_name_is_there_and_documented():
    for name in tc.train.__all__:
        assert getattr(tc.train, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'accuracy_loss'"):
        tc.train.accuracy_loss  # noqa: B018


def test_the_default_estimator_comes_with_its_interval():
    log = tc.train.CalibrationLog(level=0.9)
    for z, t in epoch(0, 3.0, binary=False):
        log.update(z, t)
    result = log.end_epoch()
    assert result.interval.level == 0.9
    assert 0.05 < log.rows[0]["low"] <= log.rows[0]["error"] <= log.rows[0]["high"]
