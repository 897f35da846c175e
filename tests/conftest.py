"""Shared settings of the suite."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.real_data import how_to_get, real_data

# `make quick` takes the first ten examples of every property
for name, examples in (("quick", 10), ("truecal", 25)):
    settings.register_profile(
        name, derandomize=True, deadline=None, max_examples=examples, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("truecal")

os.environ["MPLBACKEND"] = "Agg"  # figures are drawn into memory, here and in the processes that tests start

# Tests that take longest or wait for other processes: begun last, they would keep one worker busy when all others are done.
_FIRST = (
    "tests/engines/test_spark.py",
    "tests/engines/test_sessions.py",
    "tests/integrations/test_continuous_integration.py",
    "tests/papers/test_papers.py::test_the_page_command_writes_a_page_and_results",
    "tests/study/test_kill.py",
    "tests/watch/test_watch.py::test_the_state_of_ten_classes_is_bounded",
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search for no garbage while the tests are collected: it takes a fifth of that time and finds little."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))


@pytest.fixture(autouse=True)
def warnings_of_numpy():
    """numpy warns as it does by default: venn_abers and lifelines switch that off for the whole process that imports them."""
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        yield


class Processes:
    """Other processes of a test; those that have not ended are killed after it."""

    def __init__(self):
        self.started = []

    def start(self, *command, env=None, **options) -> subprocess.Popen:
        """Start a command with variables added to the environment, or taken out by None; the options are those of subprocess."""
        environment = {name: value for name, value in (os.environ | (env or {})).items() if value is not None}
        process = subprocess.Popen([*map(str, command)], env=environment, **options)
        self.started.append(process)
        return process

    def run(self, *command, stdin=None, text=True, env=None, cwd=None) -> subprocess.CompletedProcess:
        """Wait for a command; its output is text, or bytes where text=False."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": text}
        process = self.start(*command, stdin=subprocess.PIPE, env=env, cwd=cwd, **pipes)
        out, err = process.communicate(stdin)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def python(self, code: str, *arguments, **options) -> subprocess.CompletedProcess:
        """Run a program of Python; the options are those of `run`."""
        return self.run(sys.executable, "-c", code, *arguments, **options)

    def truecal(self, *arguments, **options) -> subprocess.CompletedProcess:
        """Run the command line; the options are those of `run`."""
        return self.run(sys.executable, "-m", "truecal.cli.main", *arguments, **options)

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


@pytest.fixture(scope="session")
def shared_processes():
    """As `processes`, for fixtures that several tests share."""
    processes = Processes()
    yield processes
    processes.close()


@pytest.fixture
def processes():
    """Start commands, programs of Python and the command line in processes of their own."""
    processes = Processes()
    yield processes
    processes.close()


def _arrays(name: str) -> dict[str, np.ndarray]:
    path = real_data(name)
    if not path.is_file():
        pytest.skip(how_to_get(name))
    with np.load(path, allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


@pytest.fixture(scope="session")
def resnet110() -> dict[str, np.ndarray]:
    """Logits of a ResNet-110 on CIFAR-10: val_logits, val_labels, test_logits, test_labels."""
    return _arrays("resnet110_cifar10_logits.npz")


@pytest.fixture(scope="session")
def vgg16() -> dict[str, np.ndarray]:
    """Probabilities of a VGG-16 on CIFAR-10: probs, labels."""
    return _arrays("vgg16_cifar10_probs.npz")
