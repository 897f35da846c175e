"""Eight threads at once, other processes, other hash seeds, thread counts and locales: the same answers."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import truecal as tc

RNG = np.random.default_rng(0)
P = RNG.random((32, 500))
Y = (RNG.random(P.shape) < P).astype(int)


def together(work):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(len(P))))


def test_an_accumulator():
    shared, alone = tc.Accumulator(), tc.Accumulator()
    together(lambda i: shared.update(Y[i], P[i]))
    for i in range(len(P)):
        alone.update(Y[i], P[i])
    assert shared.rows == alone.rows == P.size
    assert shared.compute().value == pytest.approx(alone.compute().value, abs=1e-12)


def test_a_sketch():
    shared = tc.Sketch()
    together(lambda i: shared.update(P[i], Y[i]))
    whole = tc.Sketch.from_arrays(P.ravel(), Y.ravel())
    assert tc.BinnedECE()(shared).value == pytest.approx(tc.BinnedECE()(whole).value, abs=1e-12)


def test_a_watch():
    shared, alone = tc.Watch(by="site"), tc.Watch(by="site")
    batches = [tc.Predictions.from_probs(P[i], Y[i], columns={"site": [f"s{i}"] * 500}) for i in range(len(P))]
    together(lambda i: shared.update(batches[i], at=1))
    for batch in batches:
        alone.update(batch, at=1)
    assert len(shared.step().groups) == len(P)
    text = shared.step().groups
    for key, group in alone.step().groups.items():
        assert text[key].rows_seen == group.rows_seen


@pytest.mark.parametrize("again", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_everything_travels(again):
    preds = tc.Predictions.from_probs(P[0], Y[0], clusters=np.arange(500) // 5, columns={"site": ["a", "b"] * 250})
    sample = tc.OneClass().sample(preds)
    watch, accumulator = tc.Watch(), tc.Accumulator()
    watch.update(preds, at=1)
    accumulator.update(Y[0], P[0])
    assert str(tc.measure(again(preds))) == str(tc.measure(preds)) == str(again(tc.measure(preds)))
    assert tc.BinnedECE()(again(sample).profile).value == tc.BinnedECE()(again(sample.profile)).value
    assert again(watch).step() == watch.step()
    assert again(accumulator).compute().value == accumulator.compute().value


ANSWERS = """
import numpy as np, truecal as tc
rng = np.random.default_rng(0)
p = rng.dirichlet([1, 1, 1], 400)
y = rng.choice(["a", "b", "c"], 400)
preds = tc.Predictions.from_probs(p, y, classes=["a", "b", "c"], clusters=rng.choice(["x", "y", 3, "z"], 400).tolist(),
                                  columns={"site": rng.choice(["n", "s"], 400)})
print(repr(float(tc.measure(preds, lens=tc.ClassWise()).value)), tc.measure(preds), tc.subgroups(preds, "site"))
"""


def test_hash_seed_threads_and_locale_do_not_matter(processes):
    outputs = set()
    for seed, threads, locale in (("0", "1", "C"), ("2", "4", "tr_TR.UTF-8")):
        more = {"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "LC_ALL": locale}
        ran = processes.python(ANSWERS, env=more)
        assert ran.returncode == 0, ran.stderr
        outputs.add(ran.stdout)
    assert len(outputs) == 1
