"""Training: one step under each intervention against one step of torch's plain cross-entropy, on the example's network and batches.

A step is what the training loop does with a batch: take the rows, forward, loss, backward, update. Steps of all interventions take
turns, so that a busy machine slows all of them alike, and medians are compared.
"""

import time
from collections.abc import Callable
from statistics import median

import torch
from torch.nn.functional import cross_entropy

import truecal as tc
from benchmarks.speed.harness import Row
from truecal.study.interventions.plan import DataPlan, Recipe, load_data
from truecal.study.interventions.training import make_optimizer, network, objective, repeatable

ROUNDS = 400
BOUND = 1.3


def rows() -> list[Row]:
    with repeatable():
        return _rows()


def _rows() -> list[Row]:
    data = load_data(DataPlan())
    recipe = Recipe()
    inputs, labels = torch.from_numpy(data.train.inputs), torch.from_numpy(data.train.labels)
    classes = len(data.classes)
    generator = torch.Generator().manual_seed(0)
    penalties = {
        name: tc.train.PenalizedCrossEntropy(1.0, getattr(tc.train, name)) for name in ("soft_binned_error", "mmce")
    }
    losses = {
        "torch's cross-entropy": lambda model, x, y: cross_entropy(model(x), y),
        "cross_entropy": objective("none", 0.0, classes, generator),
        "label smoothing 0.05": objective("label-smoothing", 0.05, classes, generator),
        "mixup 0.2": objective("mixup", 0.2, classes, generator),
        "focal 3": objective("focal", 3.0, classes, generator),
        "focal flsd-53": objective("focal", "flsd-53", classes, generator),
        **{f"cross-entropy + {name}": lambda m, x, y, p=p: p(m(x), y) for name, p in penalties.items()},
    }
    steps = [_step(loss, recipe, inputs, labels, classes) for loss in losses.values()]
    durations: list[list[float]] = [[] for _ in steps]
    for turn in range(ROUNDS + 20):
        for i in [(turn + j) % len(steps) for j in range(len(steps))]:  # nobody always follows the same neighbour
            start = time.perf_counter()
            steps[i]()
            if turn >= 20:
                durations[i].append(time.perf_counter() - start)
    medians = [median(t) for t in durations]
    plain = medians[0]
    return [
        Row(
            f"training step (batch {recipe.batch}), {name}",
            value,
            value / plain,
            "torch's cross-entropy",
            None if i == 0 else BOUND,
        )
        for i, (name, value) in enumerate(zip(losses, medians, strict=True))
    ]


def _step(
    loss: Callable, recipe: Recipe, inputs: torch.Tensor, labels: torch.Tensor, classes: int
) -> Callable[[], None]:
    model = network(recipe.network, tuple(inputs.shape[1:]), classes, width=recipe.width, seed=0)
    optimizer, schedule = make_optimizer(model, recipe, steps=ROUNDS + 20)
    order = torch.Generator().manual_seed(0)

    def step() -> None:
        batch = torch.randint(len(inputs), (recipe.batch,), generator=order)
        optimizer.zero_grad()
        loss(model, inputs[batch], labels[batch]).backward()
        optimizer.step()
        schedule.step()

    return step
