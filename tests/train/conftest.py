"""Products in these tests are too small for more than one thread, and other workers of the suite need the cores."""

import pytest


@pytest.fixture(scope="package", autouse=True)
def _one_thread():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
