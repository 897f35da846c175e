"""Numbers as text: digits by their uncertainty, percentages, points and p-values, by one rule everywhere."""

from math import floor, isfinite, log10

MIN_DECIMALS, MAX_DECIMALS = 3, 6  # by choice: decimals of an error on the scale of probabilities


def decimals(low: float | None, high: float | None) -> int:
    """Return the decimals that show half of an interval with two significant digits, from 3 to 6; 4 without an interval.

    >>> decimals(0.02, 0.06), decimals(0.00581, 0.00585), decimals(None, None)
    (3, 6, 4)
    """
    if low is None or high is None or not isfinite(high - low) or high <= low:
        return 4
    return min(MAX_DECIMALS, max(MIN_DECIMALS, 1 - floor(log10((high - low) / 2))))


def with_interval(value: float, low: float | None, high: float | None, *, sign: bool = False) -> str:
    """Write a value and its interval with the number of :func:`decimals` of the interval; without limits the value alone.

    >>> with_interval(0.03123, 0.0201, 0.0432), with_interval(0.0058123, 0.0057911, 0.0058301)
    ('0.031 [0.020, 0.043]', '0.005812 [0.005791, 0.005830]')
    """
    spec = f"{'+' if sign else ''}.{decimals(low, high)}f"
    return f"{value:{spec}}" if low is None or high is None else f"{value:{spec}} [{low:{spec}}, {high:{spec}}]"


def beside_limit(value: float, limit: float, decimals: int) -> str:
    """Write a number with `decimals` decimals, or more (up to 6) if only these show on which side of `limit` it lies.

    Where 6 decimals do not show it either, the number is written with ten significant digits.

    >>> beside_limit(0.0503, 0.05, 3), beside_limit(0.0623, 0.05, 3)
    ('0.0503', '0.062')
    """
    for count in range(decimals, MAX_DECIMALS + 1):
        text = f"{value:.{count}f}"
        if (float(text) > limit) == (value > limit):
            return text
    return f"{value:.{MAX_DECIMALS + 4}g}"


def p_text(p: float | None) -> str:
    """Write a p-value for a table, with three decimals; a dash for None and nan.

    >>> p_text(0.0004), p_text(0.001), p_text(0.25), p_text(None)
    ('< 0.001', '0.001', '0.250', '-')
    """
    if p is None or p != p:
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equation(p: float) -> str:
    """Write a p-value for a sentence, as an equation or an inequality: "p = " and `p_text`, or "p " where that begins with "<".

    >>> p_equation(0.0004), p_equation(0.25)
    ('p < 0.001', 'p = 0.250')
    """
    text = p_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def count_of(count: int, noun: str) -> str:
    """Write a count with its noun, with an s unless the count is 1.

    >>> count_of(1, "row"), count_of(3000, "row")
    ('1 row', '3,000 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def points(value: float, limit: float | None = None) -> str:
    """Write an error (as a fraction) in percentage points, with two significant digits, or as :func:`beside_limit`.

    >>> points(0.0312), points(0.00041), points(0), points(0.01), points(0.0204, 0.02)
    ('3.1 points', '0.041 points', '0 points', '1.0 points', '2.04 points')
    """
    size = 100 * value
    if size == 0 or not isfinite(size):
        return f"{size:g} points"
    decimals = max(0, 1 - floor(log10(abs(size))))
    return (
        f"{size:.{decimals}f} points"
        if limit is None
        else f"{beside_limit(size, round(100 * limit, 9), decimals)} points"
    )


def points_between(low: float, high: float, word: str, limit: float | None = None) -> str:
    """Write two errors (as fractions) in percentage points, joined by `word`, with the decimals of half their difference.

    With more (up to 6) if only these show on which side of `limit` they lie.

    >>> points_between(0.0212, 0.104, "to"), points_between(0.0201, 0.0232, "to", 0.02)
    ('2.1 to 10.4 points', '2.01 to 2.32 points')
    """
    decimals = _point_decimals(low, high, limit)
    return f"{100 * low:.{decimals}f} {word} {100 * high:.{decimals}f} points"


def points_within(value: float, low: float, high: float, limit: float | None = None) -> str:
    """Write an error (as a fraction) in percentage points, with the decimals that :func:`points_between` gives its interval.

    >>> points_within(0.1402, 0.1335, 0.1466), points_within(0.14, 0.08, 0.28)
    ('14.02 points', '14 points')
    """
    return f"{100 * value:.{_point_decimals(low, high, limit)}f} points"


def _point_decimals(low: float, high: float, limit: float | None) -> int:
    """Return the :func:`significant_decimals` of an interval in points, or more if only these show the side of `limit`."""
    decimals = significant_decimals(100 * low, 100 * high)
    if limit is None:
        return decimals
    texts = [beside_limit(100 * value, round(100 * limit, 9), decimals) for value in (low, high)]
    return max(decimals, *(len(text.partition(".")[2]) for text in texts))


def significant_decimals(low: float, high: float, digits: int = 2) -> int:
    """Return the decimals, from 0 to 4, that show half of an interval with `digits` significant digits.

    1 where the limits are equal or not finite.

    >>> significant_decimals(2.3, 20.2), significant_decimals(2.3, 2.9), significant_decimals(2, 2)
    (1, 2, 1)
    """
    if high == low or not isfinite(high - low):
        return 1
    return min(4, max(0, digits - 1 - floor(log10((high - low) / 2))))


def percents(low: float, high: float, *values: float) -> list[str]:
    """Write probabilities in percent, with decimals that show half of the interval with one significant digit.

    A value strictly between 0 and 1 is never written as 0% or 100%. Where the limits are equal: as :func:`percent`.

    >>> percents(0.0285, 0.0409, 0.0343, 0.0285, 0.0409), percents(0.95, 1 - 1e-9, 0.95, 1 - 1e-9), percents(0.3, 0.3, 0.3)
    (['3.4%', '2.9%', '4.1%'], ['95%', 'over 99%'], ['30%'])
    """
    if low == high:
        return [percent(value) for value in values]
    decimals = significant_decimals(100 * low, 100 * high, 1)
    texts = []
    for value in values:
        text, step = f"{100 * value:.{decimals}f}", 10.0**-decimals
        if float(text) == 100 and value < 1:
            text = f"over {100 - step:.{decimals}f}"
        elif float(text) == 0 and value > 0:
            text = f"under {step:.{decimals}f}"
        texts.append(f"{text}%")
    return texts


def about(count: int) -> str:
    """Write a count rounded to two significant digits, with commas between thousands.

    >>> about(7605), about(93)
    ('7,600', '93')
    """
    return f"{round(count, min(0, 2 - len(str(count)))):,}"


def percent(value: float) -> str:
    """Write a probability in percent, with as many decimals (up to 6) as show its distance from 0 or 1 to a tenth.

    A value strictly between 0 and 1 is never written as 0% or 100%.

    >>> percent(0.934), percent(0.99953), percent(1.0), percent(1 - 1e-12)
    ('93%', '99.95%', '100%', 'over 99.9999%')
    """
    for digits in range(7):
        text = f"{100 * value:.{digits}f}"
        gap = min(value, 1 - value)
        if gap == 0 or (float(text) not in (0.0, 100.0) and abs(float(text) / 100 - value) <= gap / 10):
            return f"{text}%"
    return "over 99.9999%" if value > 0.5 else "under 0.0001%"
