"""Mixup: blends with the labels that belong to them, reproducible, and the loss that is right for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecal as tc
from tests.lazy import Lazy

torch = Lazy("torch")
functional = Lazy("torch.nn.functional")
train = Lazy("truecal.train")


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(3, 6), st.sampled_from([0.05, 0.4, 1.0, 8.0]))
def test_labels_are_blended_like_inputs(seed, n, classes, alpha):
    """Inputs that are the one-hot labels themselves come out equal to the soft labels."""
    labels = torch.randint(classes, (n,), generator=seeded(seed))
    inputs = functional.one_hot(labels, classes).float()
    blended, soft = train.mixup(inputs, labels, alpha=alpha, classes=classes, generator=seeded(seed))
    assert torch.equal(blended, soft)
    torch.testing.assert_close(soft.sum(dim=1), torch.ones(n))
    assert (soft >= 0).all()


def test_the_loss_is_the_blend_of_two_losses():
    """lambda CE(y_i) + (1 - lambda) CE(y_j), with lambda and j read off the blended inputs."""
    n, classes = 9, 5
    labels = torch.randint(classes, (n,), generator=seeded(1))
    blended, soft = train.mixup(
        torch.eye(n, dtype=torch.float64), labels, alpha=1.0, classes=classes, generator=seeded(2)
    )
    logits = torch.randn(n, classes, generator=seeded(3), dtype=torch.float64)
    expected = 0.0
    for i, row in enumerate(blended):
        for j in row.nonzero():
            expected += row[j] * functional.cross_entropy(logits[i : i + 1], labels[j])
    torch.testing.assert_close(train.cross_entropy(logits, soft.double()), expected.squeeze() / n, rtol=1e-6, atol=0)


def test_strength_zero_returns_the_batch_itself():
    x, t = torch.rand(4, 3), torch.tensor([0, 1, 2, 0])
    assert train.mixup(x, t, alpha=0, classes=3) == (x, t)


def test_a_seed_fixes_the_blend():
    x, t = torch.rand(32, 8), torch.arange(32) % 10
    first, again, other = (train.mixup(x, t, alpha=0.3, classes=10, generator=seeded(s)) for s in (0, 0, 1))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other[0])
    one, two = (train.Mixup(0.3, classes=10, seed=seed) for seed in (4, np.int8(4)))
    for _ in range(3):
        assert torch.equal(one(x, t)[0], two(x, t)[0])
    assert torch.equal(one.eval()(x, t)[0], x)


def test_shares_follow_the_beta_distribution():
    rng = seeded(0)
    x, t = torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1])
    shares = []
    while len(shares) < 2000:
        row = train.mixup(x, t, alpha=0.5, classes=None, generator=rng)[0]
        shares.append(row[1].item())  # lambda, or 1 (swapped with itself): keep the first kind only
        if row[0] == 0:
            shares.pop()
    from scipy.stats import beta, kstest

    assert kstest(shares, beta(0.5, 0.5).cdf).pvalue > 0.001


def test_binary_and_soft_targets():
    x, t = torch.rand(6, 2), torch.tensor([0, 1, 1, 0, 1, 0])
    _, soft = train.mixup(x, t, alpha=1.0, classes=None, generator=seeded(0))
    assert soft.shape == (6,)
    _, two = train.mixup(x, t, alpha=1.0, classes=2, generator=seeded(0))
    torch.testing.assert_close(two[:, 1], soft)
    both = torch.stack((1 - t, t), dim=1).float()
    _, columns = train.mixup(x, both, alpha=1.0, classes=2, generator=seeded(0))
    torch.testing.assert_close(columns[:, 1], soft)
    assert train.cross_entropy(torch.zeros(6), soft).item() == pytest.approx(np.log(2), rel=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": -1.0}, "alpha must be"),
        ({"classes": 1}, "classes must be"),
        ({"inputs": [[1, 1], [1, 1], [1, 1]]}, "floating-point inputs"),
        ({"targets": [0, 0]}, "3 inputs and 2 targets"),
    ],
)
def test_mistakes_are_named(change, words):
    tensors = {"inputs": torch.rand(3, 2), "targets": torch.zeros(3, dtype=torch.long)}
    tensors |= {name: torch.tensor(value) for name, value in change.items() if name in tensors}
    with pytest.raises(tc.InputError, match=words):
        train.mixup(**({"alpha": 0.2, "classes": 3} | change | tensors))
