"""L-BFGS for smooth convex functions of many variables, in the precision of the start, with few vectors of memory.

scipy's keeps float64 copies of a few dozen vectors; for the matrix of a thousand classes that is more than the logits.
"""

from collections.abc import Callable

from truecal.types import Floats

_LONG = 100_000  # a vector of more numbers is long: fewer are kept, and the search stops earlier
_STOP = 1e-15  # half the squared gradient, in variables of unit curvature: how far the loss is above its minimum
_STOP_LONG = 1e-9


def minimise(function: Callable[[Floats], tuple[float, Floats]], start: Floats, most: int = 500) -> Floats:
    """Where `function`, which returns its value and gradient, is smallest. Variables should have a curvature of about 1.

    Steps along the quasi-Newton direction, halved until the value falls by a tenth of what the slope promises.
    """
    long = start.size >= _LONG
    kept, stop = (4, _STOP_LONG) if long else (20, _STOP)
    x = start
    value, gradient = function(x)
    steps: list[Floats] = []
    changes: list[Floats] = []
    for _ in range(most):
        if 0.5 * float(gradient @ gradient) <= stop * max(1.0, abs(value)):
            break
        direction = _direction(gradient, steps, changes)
        slope = float(direction @ gradient)
        if slope >= 0:
            steps, changes = [], []
            direction = -gradient
            slope = -float(gradient @ gradient)
        length, tried, after = 1.0, value, gradient
        while length > 1e-10:
            tried, after = function(x + x.dtype.type(length) * direction)
            if tried <= value + 0.1 * length * slope:
                break
            length /= 2
        # no step is short enough to improve: rounding is all that is left
        if not tried < value:
            break
        step = x.dtype.type(length) * direction
        change = after - gradient
        if float(step @ change) > 1e-10 * float(change @ change):
            steps, changes = [*steps[1 - kept :], step], [*changes[1 - kept :], change]
        x, value, gradient = x + step, tried, after
    return x


def _direction(gradient: Floats, steps: list[Floats], changes: list[Floats]) -> Floats:
    """Minus the inverse curvature times the gradient, from the last steps (the two loops of Nocedal 1980)."""
    q = -gradient
    shares = []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        share = float(step @ q) / float(step @ change)
        q = q - gradient.dtype.type(share) * change
        shares.append(share)
    if steps:
        q = q * gradient.dtype.type(float(steps[-1] @ changes[-1]) / float(changes[-1] @ changes[-1]))
    for (step, change), share in zip(zip(steps, changes, strict=True), reversed(shares), strict=True):
        other = float(change @ q) / float(step @ change)
        q = q + gradient.dtype.type(share - other) * step
    return q
