"""A comparison small enough for tests: digits as they are, a small network, two seeds."""

from types import SimpleNamespace

TINY = """\
name: tiny
data: {set: digits, validation: 0.3, test: 0.4}
model: {network: mlp, width: 16}
training: {epochs: 5, learning_rate: 0.2}
seeds: [0, 1]
interventions:
  label-smoothing: [0.05, 0.3]
  mixup: [0.2]
  focal: [flsd-53]
  temperature:
  bias-corrected-temperature:
  histogram: [5, 10]
lenses:
  top_k: [1, 2, 3]
  groupings:
    shape: {loops: [0, 6, 8, 9], bows: [2, 3, 5], strokes: [1, 4, 7]}
    halves: {even: [0, 2, 4, 6, 8], odd: [1, 3, 5, 7, 9]}
  labels: [8]
  likert_of: loops
"""
MODELS = 2 * (1 + 2 + 1 + 1)
BAD = """\
nam: x
data: {set: digit, validation: 0.7, test: 0.5, seed: -1}
model: {network: resnet, width: wide}
training: {epochs: 0, momentum: 2}
seeds: [0, 0]
interventions:
  label-smoothing: [0, 0.1, 1.5]
  mixup: 0.2
  focal: [1, flsd]
  temperature: [1]
  histogram: [0.5, 5, 5]
  platt:
lenses:
  top_k: [0]
  likert: {low: [0, 0.5], high: [0.4, 1]}
  groupings: {a: {b: [1]}}
"""


def records(table):
    """Rows of a table as objects with attributes."""
    return [SimpleNamespace(**row) for row in table.iter_rows(named=True)]
