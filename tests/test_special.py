"""Special functions: values at the ends, and no second definition of any of them."""

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from truecal import special

SOURCE = Path(special.__file__).parent
REFUSED = {  # pattern of a second definition: modules that may hold it, and why
    r"def _*(sigmoid|expit|logit|logsumexp|log_sum_exp|clopper_pearson|kish|draw_labels|positive)\b": {
        "special.py",
        "recalibration/export.py",  # nodes of a traced graph
    },
    r"1(\.0)? / \(1(\.0)? \+ np\.exp\(": set(),
    r"np\.log\((\w+)\) - np\.log1p\(-\1\)|np\.log\((\w+) / \(1 - \2\)\)": {
        "recalibration/score_maps.py",  # recorded as nodes of a traced graph, which takes ufuncs alone
    },
    r"import .*\bbetaincinv\b": {"special.py", "lab/distributions.py"},  # quantiles of a distribution of scores
    r"scipy\.special import .*\b(expit|logit|logsumexp)\b": set(),
    r"np\.where\((.+?) > 0, \1, 1(\.0)?\)": {"special.py"},
    r"\*\* ?2 / (float\()?\(?(\w+\.)?(weights?|w) ?(@|\*\*? ?)": {"special.py"},
    r"cumsum\(axis=1\).*random\(|random\(.*cumsum\(axis=1\)": {"special.py"},
}


@cache
def code_lines(path: Path) -> list[tuple[int, str]]:
    """Lines of a module outside docstrings."""
    text = path.read_text()
    hidden: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            hidden |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return [(i, line) for i, line in enumerate(text.splitlines(), 1) if i not in hidden]


@pytest.mark.parametrize("pattern", REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_special_functions_have_one_definition(pattern: str) -> None:
    second = [
        f"{path.relative_to(SOURCE)}:{i}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if str(path.relative_to(SOURCE)) not in REFUSED[pattern]
        for i, line in code_lines(path)
        if re.search(pattern, line)
    ]
    assert not second, "use truecal.special: " + "; ".join(second)


def test_clopper_pearson_limits_have_exact_tails() -> None:
    rows = np.repeat([1, 7, 40], [2, 8, 41])
    ones = np.concatenate([np.arange(2), np.arange(8), np.arange(41)])
    low, high = special.clopper_pearson(ones, rows, 0.025)
    inner = ones > 0
    np.testing.assert_allclose(stats.binom.sf(ones[inner] - 1, rows[inner], low[inner]), 0.025, rtol=1e-9)
    inner = ones < rows
    np.testing.assert_allclose(stats.binom.cdf(ones[inner], rows[inner], high[inner]), 0.025, rtol=1e-9)
    assert (low[ones == 0] == 0).all()
    assert (high[ones == rows] == 1).all()


def test_clopper_pearson_without_rows_is_unbounded() -> None:
    assert special.clopper_pearson(0.0, 0.0, 0.05) == (0.0, 1.0)


def test_logistic_functions_at_the_ends() -> None:
    assert special.expit(np.float32([-200, 200])).dtype == np.float64
    np.testing.assert_array_equal(special.logit([0.0, 1.0]), [-np.inf, np.inf])
    assert special.logsumexp([-np.inf, -np.inf]) == -np.inf


def test_draw_labels_follows_probabilities() -> None:
    rng = np.random.default_rng(0)
    probs = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    shares = np.bincount(special.draw_labels(probs, rng), minlength=3) / len(probs)
    assert np.abs(shares - probs[0]).max() < 4 * np.sqrt(0.25 / len(probs))
    assert special.draw_labels(np.array([0.0, 1.0]), rng).tolist() == [0, 1]


def test_kish_counts_equal_weights_as_rows() -> None:
    assert special.kish(np.full(7, 0.3)) == pytest.approx(7)
