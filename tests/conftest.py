"""Shared settings of the suite."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "truecal", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("truecal")

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def _arrays(name: str) -> dict[str, np.ndarray]:
    path = _SHARED / name
    if not path.is_file():
        pytest.skip(f"real logits are not here ({name})")
    with np.load(path, allow_pickle=False) as held:
        return {key: held[key] for key in held.files}


@pytest.fixture(scope="session")
def resnet110() -> dict[str, np.ndarray]:
    """Logits of a ResNet-110 on CIFAR-10: val_logits, val_labels, test_logits, test_labels."""
    return _arrays("resnet110_cifar10_logits.npz")


@pytest.fixture(scope="session")
def vgg16() -> dict[str, np.ndarray]:
    """Probabilities of a VGG-16 on CIFAR-10: probs, labels."""
    return _arrays("vgg16_cifar10_probs.npz")
