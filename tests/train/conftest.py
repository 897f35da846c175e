"""Products in these tests are too small for more than one thread, and other workers of the suite need the cores."""

import torch

torch.set_num_threads(1)
