"""The speed benchmarks: their parts exist, and the page has the marks that the table is written between."""

from benchmarks.speed import __main__ as speed


def test_usual_parts_exist():
    assert {path.stem for path in speed.HERE.glob("*.py")} > {*speed.USUAL, *speed.NOT_BENCHMARKS}


def test_page_has_two_marks():
    assert speed.PAGE.read_text(encoding="utf-8").count(speed.MARK) == 2
