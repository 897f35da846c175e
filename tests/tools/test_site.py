"""What the documentation builder does to pages before the generator reads them."""

import pytest

pytest.importorskip("griffe", reason="the builder of the documentation is not installed")

from tools.site.docstrings import readable
from tools.site.examples import are_abbreviated, copyable, with_copyable_examples
from tools.site.formulas import with_formulas


def test_examples_lose_prompts_and_outputs_become_comments():
    assert copyable(">>> x = 2\n>>> x + 1\n3\n", "page", None) == "x = 2\nx + 1\n# 3"


def test_abbreviated_outputs_are_replaced_by_what_is_printed():
    page = "```python\n>>> x = 1 / 3\n```\ntext\n```python\n>>> x\n0.3...\n```"
    assert "# 0.3333333333333333" in with_copyable_examples(page, "page")
    assert are_abbreviated(">>> x\n0.3...\n")
    assert not are_abbreviated(">>> for i in x:\n...     i\n3\n")


def test_a_wrong_output_stops_the_build():
    with pytest.raises(AssertionError, match="expected"):
        with_copyable_examples("```python\n>>> 1 / 3\n0.4...\n```", "page")


def test_expected_errors_show_their_last_line():
    text = '>>> int("a")\nTraceback (most recent call last):\n    ...\nValueError: invalid literal ...\n'
    assert copyable(text, "page", {}).splitlines()[-1].startswith("# ValueError: invalid literal for int()")


def test_formulas_become_mathml_outside_of_code():
    page = with_formulas("costs $5 and `$x$`, but $x^2$:\n\n$$\\sum_i y_i$$\n\n```\n$ echo $HOME\n```\n")
    assert page.count("<math") == 2
    assert "`$x$`" in page
    assert "$ echo $HOME" in page


def test_docstrings_get_a_section_of_examples():
    assert readable("One.\n\n>>> 1 + 1\n2").splitlines()[2:] == [
        "Examples",
        "--------",
        "```python",
        "1 + 1",
        "# 2",
        "```",
    ]
