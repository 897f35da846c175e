"""Losses: equal to their formulas, exact at strength 0, right gradients, and finite wherever logits go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecal as tc
from tests.lazy import Lazy
from tests.train import naive

torch = Lazy("torch")
functional = Lazy("torch.nn.functional")
train = Lazy("truecal.train")

REDUCTIONS = ("mean", "sum", "none")
LOSSES = {
    "smoothing": lambda z, t, **o: train.smoothed_cross_entropy(z, t, smoothing=0.2, **o),
    "focal 0.5": lambda z, t, **o: train.focal_loss(z, t, gamma=0.5, **o),
    "focal 2": lambda z, t, **o: train.focal_loss(z, t, gamma=2, **o),
    "flsd-53": lambda z, t, **o: train.focal_loss(z, t, gamma="flsd-53", **o),
}
PENALTIES = {
    "soft-binned": lambda z, t, **o: train.soft_binned_error(z, t, **o),
    "mmce": lambda z, t, **o: train.mmce(z, t, **o),
}
KINDS = ("hard", "soft")


def batch(seed, n=7, classes=4, kind="hard", scale=3.0):
    """Logits in float64 and targets; classes=1 means binary logits."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=scale, size=(n,) if classes == 1 else (n, classes))
    if kind == "hard":
        targets = rng.integers(max(classes, 2), size=n)
    else:
        targets = rng.random(n) if classes == 1 else rng.dirichlet(np.full(classes, 0.5), n)
    return torch.from_numpy(logits), torch.from_numpy(targets)


shapes = st.tuples(
    st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 7), st.sampled_from(KINDS), st.floats(0.1, 8)
)


@given(shapes, st.floats(0, 0.99), st.floats(0, 6), st.sampled_from(REDUCTIONS))
def test_losses_equal_their_formulas(shape, smoothing, gamma, reduction):
    z, t = batch(*shape)
    reduce = {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction]
    result = train.smoothed_cross_entropy(z, t, smoothing=smoothing, reduction=reduction)
    np.testing.assert_allclose(result, reduce(naive.focal(z, t, 0.0, smoothing)), rtol=1e-10, atol=1e-10)
    for power in (gamma, "flsd-53"):
        result = train.focal_loss(z, t, gamma=power, reduction=reduction)
        np.testing.assert_allclose(result, reduce(naive.focal(z, t, power)), rtol=1e-10, atol=1e-10)


@given(shapes, st.floats(0.05, 0.99))
def test_weights_equal_their_formulas(shape, smoothing):
    z, t = batch(*shape)
    classes = 2 if z.ndim == 1 else z.shape[1]
    weight = torch.from_numpy(np.random.default_rng(shape[0]).uniform(0.2, 3, classes))
    total = weight[t].sum().item() if shape[3] == "hard" else len(z)
    mean = naive.focal(z, t, 2.0, weight=weight).sum() / total
    np.testing.assert_allclose(train.focal_loss(z, t, gamma=2.0, weight=weight), mean, rtol=1e-10)
    rows = naive.focal(z, t, 0.0, smoothing, weight)
    result = train.smoothed_cross_entropy(z, t, smoothing=smoothing, weight=weight, reduction="none")
    np.testing.assert_allclose(result, rows, rtol=1e-10)


@given(shapes, st.integers(1, 20), st.floats(1e-3, 0.1), st.floats(0.05, 1))
def test_penalties_equal_their_formulas(shape, bins, temperature, width):
    z, t = batch(*shape)
    result = train.soft_binned_error(z, t, bins=bins, temperature=temperature)
    np.testing.assert_allclose(result, naive.soft_binned(z, t, bins, temperature), atol=1e-10)
    square = naive.mmce(z, t, width) ** 2  # near 0 the root of a rounding error of 1e-17 is above 1e-10
    np.testing.assert_allclose(train.mmce(z, t, width=width) ** 2, square, rtol=1e-10, atol=1e-14)


def test_the_oracles_tell_rival_answers_apart():
    z, t = batch(1, n=40)
    assert naive.focal(z, t, 2.0).mean() < 0.95 * naive.focal(z, t, 0.0).mean()
    assert not np.allclose(naive.focal(z, t, "flsd-53"), naive.focal(z, t, 3.0))
    assert abs(naive.soft_binned(z, t, 15, 0.01) - naive.mmce(z, t, 0.4)) > 0.01


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_strength_zero_is_torchs_cross_entropy_bit_for_bit(reduction, kind, dtype):
    dtype = getattr(torch, dtype)
    z, t = batch(2, n=50, classes=10, kind=kind)
    z, t = z.to(dtype), t.to(dtype) if kind == "soft" else t
    weight = torch.linspace(0.5, 2, 10, dtype=dtype)
    for w in (None, weight):
        plain = functional.cross_entropy(z, t, weight=w, reduction=reduction)
        assert torch.equal(train.cross_entropy(z, t, weight=w, reduction=reduction), plain)
        assert torch.equal(train.smoothed_cross_entropy(z, t, smoothing=0.0, weight=w, reduction=reduction), plain)
        assert torch.equal(train.focal_loss(z, t, gamma=0, weight=w, reduction=reduction), plain)
        assert torch.equal(train.LabelSmoothing(0.0, weight=w, reduction=reduction)(z, t), plain)
        assert torch.equal(train.FocalLoss(0.0, weight=w, reduction=reduction)(z, t), plain)
    assert torch.equal(train.PenalizedCrossEntropy(0.0)(z, t), functional.cross_entropy(z, t))
    z, t = batch(3, n=50, classes=1, kind=kind)
    z = z.to(dtype)
    plain = functional.binary_cross_entropy_with_logits(z, t.to(dtype), reduction=reduction)
    assert torch.equal(train.smoothed_cross_entropy(z, t, smoothing=0.0, reduction=reduction), plain)
    assert torch.equal(train.focal_loss(z, t, gamma=0.0, reduction=reduction), plain)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [1, 2, 5])
@pytest.mark.parametrize("name", [*LOSSES, *PENALTIES])
def test_gradients(name, classes, kind):
    z, t = batch(4, n=6, classes=classes, kind=kind, scale=1.5)
    z.requires_grad_()
    loss = (LOSSES | PENALTIES)[name]
    assert torch.autograd.gradcheck(lambda logits: loss(logits, t), (z,), atol=1e-6)
    if name in LOSSES:
        assert torch.autograd.gradcheck(lambda logits: loss(logits, t, reduction="none"), (z,), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", [*LOSSES, *PENALTIES])
def test_extreme_logits_give_finite_losses_and_gradients(name, classes, dtype, kind):
    dtype = getattr(torch, dtype)
    corners = torch.tensor([1e4, -1e4, 0.0, 1.0])
    z = corners if classes == 1 else torch.cartesian_prod(corners, corners, corners)
    if kind == "hard":
        t = torch.arange(len(z)) % max(classes, 2)
    else:
        t = torch.linspace(0, 1, len(z)) if classes == 1 else functional.one_hot(torch.arange(len(z)) % 3).float()
    z = z.to(dtype).requires_grad_()
    loss = (LOSSES | PENALTIES)[name](z, t)
    loss.backward()
    assert loss.dtype == (torch.float64 if dtype is torch.float64 else torch.float32)
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()
    assert name in PENALTIES or z.grad.abs().max() > 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [*LOSSES, *PENALTIES])
def test_half_precision_is_computed_in_float32(name, dtype):
    dtype = getattr(torch, dtype)
    z, t = batch(5, n=64, classes=10)
    half = z.to(dtype)
    loss = (LOSSES | PENALTIES)[name]
    assert torch.equal(loss(half, t), loss(half.float(), t))


@pytest.mark.parametrize("name", LOSSES)
def test_binary_logits_are_two_classes(name):
    for kind in KINDS:
        z, t = batch(6, n=30, classes=1, kind=kind)
        both = torch.stack((torch.zeros_like(z), z), dim=1)
        labels = t if kind == "hard" else torch.stack((1 - t, t), dim=1)
        torch.testing.assert_close(LOSSES[name](z, t), LOSSES[name](both, labels), rtol=1e-12, atol=0)


def test_hard_targets_are_soft_targets_with_all_on_one_class():
    z, t = batch(7, n=30)
    for loss in (LOSSES | PENALTIES).values():
        torch.testing.assert_close(loss(z, t), loss(z, functional.one_hot(t, 4).double()), rtol=1e-12, atol=0)


def test_the_penalty_is_zero_without_a_gap_and_still_has_a_gradient():
    z = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    for penalty in PENALTIES.values():
        result = penalty(z, torch.tensor([0, 0, 1, 1]))  # half sure, half right
        result.backward()
        assert result < 1e-7
        assert torch.isfinite(z.grad).all()


def test_descending_the_penalty_calibrates():
    rng = torch.Generator().manual_seed(0)
    z = 4 * torch.randn(400, 3, generator=rng)
    t = torch.multinomial((z / 4).softmax(1), 1, generator=rng).squeeze(1)
    for penalty in PENALTIES.values():
        scale = torch.ones((), requires_grad=True)
        optimizer = torch.optim.Adam([scale], lr=0.05)
        for _ in range(60):
            optimizer.zero_grad()
            penalty(z * scale, t).backward()
            optimizer.step()
        assert 0.15 < scale.item() < 0.4  # 1/4 undoes the overconfidence


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda z, t: train.focal_loss(z, t[:2], gamma=1), "one class index per row"),
        (lambda z, t: train.focal_loss(z, torch.rand(3, 9), gamma=1), "one probability per logit"),
        (lambda z, t: train.cross_entropy(z[None], t), "shape"),
        (lambda z, t: train.cross_entropy(z.long(), t), "logits must have shape"),
        (lambda z, t: train.smoothed_cross_entropy(z, t, smoothing=1.0), "smoothing must be"),
        (lambda z, t: train.LabelSmoothing(-0.1), "smoothing must be"),
        (lambda z, t: train.focal_loss(z, t, gamma=-1), "gamma must be"),
        (lambda z, t: train.FocalLoss("flsd"), "'flsd-53'"),
        (lambda z, t: train.focal_loss(z, t, gamma=1, reduction="avg"), "reduction must be"),
        (lambda z, t: train.soft_binned_error(z, t, bins=0), "bins must be"),
        (lambda z, t: train.mmce(z, t, width=0), "width must be"),
        (lambda z, t: train.mmce(z[:0], t[:0]), "empty batch"),
        (lambda z, t: train.PenalizedCrossEntropy(-1), "strength must be"),
    ],
)
def test_mistakes_are_named(call, words):
    z, t = batch(8, n=3)
    with pytest.raises(tc.InputError, match=words):
        call(z, t)


def test_modules_do_what_the_functions_do_and_keep_their_weights():
    z, t = batch(9, n=20)
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    loss = train.FocalLoss(2.0, weight=weight, reduction="sum")
    assert torch.equal(loss(z, t), train.focal_loss(z, t, gamma=2.0, weight=weight, reduction="sum"))
    assert "weight" in loss.state_dict()
    smooth = train.LabelSmoothing(0.1, weight=weight)
    assert torch.equal(smooth(z, t), train.smoothed_cross_entropy(z, t, smoothing=0.1, weight=weight))
    both = train.PenalizedCrossEntropy(0.5, train.mmce)
    assert torch.equal(both(z, t), train.cross_entropy(z, t) + 0.5 * train.mmce(z, t))
