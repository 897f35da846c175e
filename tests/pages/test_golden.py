"""The numbers of a whole report, kept: a change of any of them is seen, and either meant or a mistake.

`python -m tests.pages.test_golden` writes them anew; the difference then shows in the change for review.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.pages.examples import binary, multiclass
from truecal.lenses import OneClass, TopLabel
from truecal.pages.model import gather_model
from truecal.predictions import Predictions
from truecal.table import plain

pytestmark = pytest.mark.usefixtures("all_estimators")

GOLDEN = Path(__file__).with_name("golden.json")
EXAMPLES = {"binary": (binary, (1500,), OneClass()), "classes": (multiclass, (800, 4), TopLabel())}


def numbers(name, *, nudged=False):
    """What the page of an example shows, without the time, the versions and the cells it is computed from."""
    make, sizes, lens = EXAMPLES[name]
    preds = make(*sizes)
    by = "site" if name == "binary" else None
    selected = last_bits_moved(preds) if nudged else preds
    page = gather_model(selected, title="golden", lens=lens, by=by)
    numbers = plain(page.pick("conclusion", "mean_score", "mean_outcome"))
    numbers["estimates"] = [[title, list(estimate.frame())] for title, estimate in page.estimates]
    numbers["classes"] = [[row["name"], row["rate"], list(row["estimate"].frame())] for row in page.classes]
    numbers["groups"] = [list(table.frame()) for table in page.groups]
    evaluation = page.recalibration
    remedies = {name: getattr(evaluation, name) for name in ("winner", "recommended", "reason", "tied")}
    remedies["rows"] = list(evaluation.frame())
    drawn = plain(page.drawn()["remedies"])
    values = {**numbers, "curves": thin(plain(page.curves))}
    values["recalibration"] = {**remedies, "curves": thin(drawn)}
    return json.loads(json.dumps(plain(values)))


def last_bits_moved(preds):
    """The same predictions, every computed probability one unit in the last place up or down; typed ones (0.8) stay."""
    up = np.random.default_rng(1).random(preds.probs.shape) < 0.5
    typed = np.abs(preds.probs - preds.probs.round(1)) < 1e-12
    probs = np.where(typed, preds.probs, np.nextafter(preds.probs, np.where(up, 1.0, 0.0)))
    return Predictions.from_probs(probs, preds.labels, columns=dict(preds.columns))


def thin(curves):
    """Every twentieth point of every curve."""
    return {name: {key: values[::20] for key, values in curve.items()} for name, curve in curves.items()}


def flat(value, at=""):
    if isinstance(value, dict):
        return {k: v for name, item in value.items() for k, v in flat(item, f"{at}/{name}").items()}
    if isinstance(value, list):
        return {k: v for i, item in enumerate(value) for k, v in flat(item, f"{at}/{i}").items()}
    return {at: value}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_report_keeps_its_numbers_when_the_last_bit_of_the_input_moves_too(name):
    """Machines differ in the last bits of a logarithm or a sum; what is simulated and printed must not follow them."""
    drawn = numbers(name)
    compare(drawn, json.loads(GOLDEN.read_text())[name], rel=1e-5, abs=1e-7)
    compare(numbers(name, nudged=True), drawn, rel=0, abs=1e-6)


def compare(found, kept, **tolerance):
    found, kept = flat(found), flat(kept)
    assert found.keys() == kept.keys()
    for position, value in kept.items():
        if isinstance(value, float) and np.isfinite(value):
            assert found[position] == pytest.approx(value, **tolerance), position
        else:
            assert found[position] == value or (value != value and found[position] != found[position]), position


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: numbers(name) for name in EXAMPLES}, indent=1, sort_keys=True) + "\n")
