"""Names for the array types that appear in signatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]  # float16, float32 or float64, as the caller gave it
Float64s = NDArray[np.float64]
Indices = NDArray[np.intp]
