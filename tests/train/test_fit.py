"""Training a network: torch's own descent, the same bits every time, and each intervention doing its work."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import truecal as tc
from truecal.study.interventions.plan import Recipe
from truecal.study.interventions.training import Descent, fit, logits_of, network, objective, repeatable

RECIPE = Recipe("mlp", width=12, epochs=5, batch=16, learning_rate=0.1)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=240)
    inputs = 1.2 * np.eye(4)[labels] + rng.normal(scale=0.6, size=(240, 4))
    return inputs.astype(np.float32), labels


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_descent_is_torchs_own(decay):
    recipe = Recipe("mlp", width=6, learning_rate=0.2, momentum=0.8, weight_decay=decay)
    x, y = torch.randn(30, 5, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3
    ours, theirs = (network("mlp", (5,), 3, width=6, seed=1) for _ in range(2))
    descent = Descent(ours, recipe, steps=20)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.2, momentum=0.8, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    for _ in range(20):
        descent.step(tc.train.cross_entropy(ours(x), y))
        optimizer.zero_grad()
        tc.train.cross_entropy(theirs(x), y).backward()
        optimizer.step()
        schedule.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "strength"),
    [("none", 0.0), ("label-smoothing", 0.1), ("mixup", 0.4), ("focal", 2.0), ("focal", "flsd-53")],
)
def test_a_seed_fixes_every_bit(blobs, kind, strength):
    def logits(seed):
        return logits_of(fit(*blobs, classes=4, recipe=RECIPE, kind=kind, strength=strength, seed=seed), blobs[0])

    assert np.array_equal(logits(0), logits(0))
    assert not np.array_equal(logits(0), logits(1))
    torch.manual_seed(99)  # what happens around does not matter
    assert np.array_equal(logits(0), logits(0))


def test_strength_zero_trains_the_base_model(blobs):
    plain = logits_of(fit(*blobs, classes=4, recipe=RECIPE), blobs[0])
    for kind in ("label-smoothing", "mixup", "focal"):
        assert np.array_equal(
            logits_of(fit(*blobs, classes=4, recipe=RECIPE, kind=kind, strength=0.0), blobs[0]), plain
        )


def test_every_intervention_makes_the_network_less_sure(blobs):
    def sure(kind, strength):
        logits = logits_of(
            fit(
                *blobs,
                classes=4,
                recipe=Recipe("mlp", width=12, epochs=40, batch=16, learning_rate=0.1),
                kind=kind,
                strength=strength,
            ),
            blobs[0],
        )
        return torch.from_numpy(logits).softmax(1).max(1).values.mean().item()

    plain = sure("none", 0.0)
    for kind, strength in (("label-smoothing", 0.2), ("mixup", 1.0), ("focal", 3.0)):
        assert sure(kind, strength) < plain - 0.03


def test_settings_of_torch_are_left_as_they_were():
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    with repeatable():
        assert torch.get_num_threads() == 1
        assert torch.are_deterministic_algorithms_enabled()
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before


@pytest.mark.parametrize("shape", [(8, 8), (3, 9, 7)])
def test_networks(shape):
    one, two, other = (network("cnn", shape, 5, width=2, seed=s) for s in (3, 3, 4))
    x = torch.rand(4, *shape)
    assert one(x).shape == (4, 5)
    assert torch.equal(one(x), two(x))
    assert not torch.equal(one(x), other(x))
    assert network("mlp", shape, 5, width=2, seed=0)(x).shape == (4, 5)


def test_mistakes_are_named():
    with pytest.raises(tc.InputError, match="a cnn needs images"):
        network("cnn", (5,), 3, width=2, seed=0)
    with pytest.raises(tc.InputError, match="takes a number"):
        objective("mixup", "flsd-53", 3, torch.Generator())


def test_training_does_not_load_the_compiler():
    code = "import sys, numpy as np; from truecal.study.interventions.training import *; "
    code += "fit(np.eye(4, dtype=np.float32), np.arange(4), classes=4, recipe=Recipe('mlp', width=4, epochs=1)); "
    ran = subprocess.run(
        [sys.executable, "-c", code + "print('torch._dynamo' in sys.modules)"], capture_output=True, text=True
    )
    assert ran.stdout.strip() == "False", ran.stderr
