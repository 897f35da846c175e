"""The same printed numbers on every processor.

numpy and OpenBLAS choose their kernels by processor, and these differ in the last bits of a logarithm or a sum. A slice of
what truecal prints runs here in processes of their own that may only use the kernels of other processors. Names of features
that this processor does not have are ignored by numpy (with a warning) and by OpenBLAS.
"""

import platform
import sys

import pytest

SLICE = """
import numpy as np
import truecal as tc
from truecal.lab.fit import fit_world

rng = np.random.default_rng(0)
logits = 2 * rng.normal(size=(1200, 4))
calm = np.exp(0.6 * logits)
labels = ((calm / calm.sum(axis=1, keepdims=True)).cumsum(axis=1) < rng.random((1200, 1))).sum(axis=1).clip(0, 3)
preds = tc.Predictions.from_logits(logits, labels)

density = tc.estimators.KernelDensityECE()
for estimator in (tc.RankSeries(), tc.BinnedECE(), tc.SweepECE(), tc.DebiasedECE(), tc.NearestECE(), density):
    print(type(estimator).__name__, f"{float(tc.measure(preds, estimator=estimator)):.8f}")
whole = tc.measure(preds)
print("interval", f"{whole.interval.low:.8f} {whole.interval.high:.8f} {whole.p_value:.6f}")

fit = fit_world(tc.TopLabel()(preds))
print("fit", f"{fit.beta.scores.alpha:.8f} {fit.beta.scores.beta:.8f}", fit.best.name, f"{fit.world.true_error():.8f}")
for scores in ("empirical", "beta"):
    answer = tc.lab.how_biased(preds, m=20, scores=scores, estimators={"EW": tc.BinnedECE(norm=2), "ours": tc.RankSeries()})
    print(scores, *(f"{trial.bias:.8f} {trial.std:.8f}" for trial in answer.trials))
world = tc.lab.PAPER_WORLDS["resnet110_c10"]
print("world", f"{tc.lab.bias(tc.RankSeries(), world, n=500, m=50).bias:.8f}")
print("power", tc.lab.power(tc.RankSeries(), tc.lab.World(tc.lab.Uniform(), tc.lab.Power(1.2)), n=300, m=50).hits)
repaired = tc.recalibration.TemperatureScaling(input="logits").fit(logits, labels).predict_proba(logits)
print("temperature", f"{float(tc.calibration_error(labels, repaired)):.8f}")
"""

MACHINES = {
    "no AVX-512": {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
    "no AVX2": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"},
    "OpenBLAS of Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "OpenBLAS of SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "OpenBLAS of Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
}


def printed(processes, settings: dict[str, str]) -> str:
    plain = {"NPY_DISABLE_CPU_FEATURES": None, "OPENBLAS_CORETYPE": None}
    done = processes.run(sys.executable, "-W", "ignore", "-c", SLICE, env=plain | settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def here(shared_processes):
    return printed(shared_processes, {})


@pytest.mark.full
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the kernels named here are those of x86")
@pytest.mark.parametrize("machine", MACHINES)
def test_another_processor_prints_the_same_numbers(processes, machine, here):
    settings = MACHINES[machine]
    kernels = settings.get("OPENBLAS_CORETYPE", "")
    if not can_run(kernels):
        pytest.skip(f"OpenBLAS runs the kernels it is told to, and this processor cannot run those of {kernels}")
    assert printed(processes, settings) == here


def test_the_slice_prints_what_it_says(here):
    names = [line.split()[0] for line in here.splitlines()]
    assert {"RankSeries", "fit", "empirical", "beta", "world", "power", "temperature"} <= set(names)


def can_run(kernels: str) -> bool:
    from numpy._core._multiarray_umath import __cpu_features__

    needed = {"SkylakeX": ("AVX512_SKX", "X86_V4"), "Haswell": ("AVX2", "X86_V3")}.get(kernels)
    return needed is None or any(__cpu_features__.get(name, False) for name in needed)
