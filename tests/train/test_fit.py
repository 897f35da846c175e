"""Training a network: torch's own descent, the same bits every time, and each intervention doing its work."""

import numpy as np
import pytest

import truecal as tc
from tests.lazy import Lazy
from truecal.study.interventions.plan import Recipe

torch = Lazy("torch")
training = Lazy("truecal.study.interventions.training")

RECIPE = Recipe("mlp", width=12, epochs=5, batch=16, learning_rate=0.1)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=240)
    inputs = 1.2 * np.eye(4)[labels] + rng.normal(scale=0.6, size=(240, 4))
    return inputs.astype(np.float32), labels


def test_learning_rate_falls_along_a_half_cosine():
    model = training.network("mlp", (5,), 3, width=6, seed=1)
    optimizer, schedule = training.make_optimizer(model, Recipe("mlp", learning_rate=0.2, momentum=0.8), steps=20)
    rates = []
    for _ in range(20):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([0.1 * (1 + np.cos(np.pi * t / 20)) for t in range(20)])


@pytest.mark.parametrize(
    ("kind", "strength"),
    [("none", 0.0), ("label-smoothing", 0.1), ("mixup", 0.4), ("focal", 2.0), ("focal", "flsd-53")],
)
def test_a_seed_fixes_every_bit(blobs, kind, strength):
    def logits(seed):
        return training.logits_of(
            training.fit(*blobs, classes=4, recipe=RECIPE, kind=kind, strength=strength, seed=seed), blobs[0]
        )

    assert np.array_equal(logits(0), logits(0))
    assert not np.array_equal(logits(0), logits(1))
    torch.manual_seed(99)  # what happens around does not matter
    assert np.array_equal(logits(0), logits(0))


def test_strength_zero_trains_the_base_model(blobs):
    plain = training.logits_of(training.fit(*blobs, classes=4, recipe=RECIPE), blobs[0])
    for kind in ("label-smoothing", "mixup", "focal"):
        assert np.array_equal(
            training.logits_of(training.fit(*blobs, classes=4, recipe=RECIPE, kind=kind, strength=0.0), blobs[0]), plain
        )


def test_every_intervention_makes_the_network_less_sure(blobs):
    def sure(kind, strength):
        logits = training.logits_of(
            training.fit(
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
    with training.repeatable():
        assert torch.get_num_threads() == 1
        assert torch.are_deterministic_algorithms_enabled()
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before


@pytest.mark.parametrize("shape", [(8, 8), (3, 9, 7)])
def test_networks(shape):
    one, two, other = (training.network("cnn", shape, 5, width=2, seed=s) for s in (3, 3, 4))
    x = torch.rand(4, *shape)
    assert one(x).shape == (4, 5)
    assert torch.equal(one(x), two(x))
    assert not torch.equal(one(x), other(x))
    assert training.network("mlp", shape, 5, width=2, seed=0)(x).shape == (4, 5)


def test_mistakes_are_named():
    with pytest.raises(tc.InputError, match="takes a number"):
        training.objective("mixup", "flsd-53", 3, torch.Generator())
