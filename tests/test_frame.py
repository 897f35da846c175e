"""The one tabular result: columns in, any kind of table out."""

import numpy as np
import pytest

import truecal as tc
from truecal.table import Frame

FRAME = Frame({"name": ["a|b", "x & <y>\nz"], "error": [0.125, np.nan], "n": np.array([3, 4]), "kept": [True, None]})


def test_columns_rows_and_length():
    assert FRAME.columns == ("name", "error", "n", "kept")
    assert len(FRAME) == 2
    assert FRAME["n"].tolist() == [3, 4]
    assert FRAME["kept"].dtype == object
    assert FRAME[0] == {"name": "a|b", "error": 0.125, "n": 3, "kept": True}
    assert [row["n"] for row in FRAME] == [3, 4]
    assert type(FRAME[0]["n"]) is int
    assert "n" in FRAME
    assert "m" not in FRAME
    assert FRAME.select("n", "name").columns == ("n", "name")
    assert FRAME.with_columns(n=[1, 2])["n"].tolist() == [1, 2]


def test_columns_cannot_be_changed_behind_the_frame():
    values = np.arange(3)
    frame = Frame({"n": values})
    with pytest.raises(ValueError, match="read-only"):
        frame["n"][0] = 7
    values[0] = 5
    assert frame["n"][0] == 0


def test_kinds_are_kept():
    frame = Frame(
        {"mixed": [1, "1", None], "whole": [1, 2, 3], "number": [1, 2.5, 3], "pairs": [(1, 2), (3, 4), (5, 6)]}
    )
    assert frame["mixed"].tolist() == [1, "1", None]
    assert frame["whole"].dtype.kind == "i"
    assert frame["number"].dtype == np.float64
    assert frame["pairs"].tolist() == [(1, 2), (3, 4), (5, 6)]


def test_equality_is_by_value_and_order_of_columns():
    same = {"name": ["a|b", "x & <y>\nz"], "error": [0.125, float("nan")], "n": [3, 4], "kept": [True, None]}
    assert same == FRAME
    assert {**same, "n": [3, 5]} != FRAME
    assert {name: same[name] for name in reversed(same)} != FRAME
    assert Frame({"n": [1]}) != {"n": [1, 2]}
    assert FRAME != 3


def test_refusals():
    with pytest.raises(tc.InputError, match="different lengths: a has 1, b has 2"):
        Frame({"a": [1], "b": [1, 2]})
    with pytest.raises(tc.InputError, match=r"column 'a' has shape \(2, 2\)"):
        Frame({"a": np.ones((2, 2))})
    with pytest.raises(tc.InputError, match="no column 'm'; the columns are name"):
        FRAME["m"]
    with pytest.raises(tc.InputError, match="int has no columns"):
        Frame.of(3)
    with pytest.raises(tc.InputError, match=r"not 'a\.xls'"):
        FRAME.write("a.xls")


def test_markup_is_escaped():
    assert FRAME.to_markdown().splitlines()[2] == "| a\\|b | 0.125 | 3 | True |"
    assert FRAME.to_markdown().splitlines()[3] == "| x &amp; &lt;y&gt; z | nan | 4 |  |"
    assert "x &amp; &lt;y&gt;" in FRAME.to_html()
    assert "<y>" not in FRAME._repr_html_()
    assert "x \\& <y> z & nan & 4" in FRAME.to_latex()
    assert FRAME.to_latex().startswith("\\begin{tabular}{lrrl}")
    assert Frame({"c": ["~^\\"]}).to_latex().splitlines()[4].startswith("\\textasciitilde{}\\textasciicircum{}")


def test_a_long_frame_is_printed_in_part():
    drawn = repr(Frame({"n": range(100)})).splitlines()
    assert len(drawn) == 23
    assert drawn[-1] == "(100 rows)"
    assert len(Frame({"n": range(100)}).to_text().splitlines()) == 101


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_there_and_back(kind):
    pytest.importorskip(kind)
    frame = Frame({"name": ["a", "b"], "error": [0.5, 0.25], "n": [1, 2]})
    table = frame.to_polars() if kind == "polars" else frame.to_pandas()
    assert Frame.of(table) == frame
    assert Frame.of(frame) is frame
    assert Frame.of(list(frame)) == frame


@pytest.mark.parametrize("ending", ["csv", "parquet", "md", "tex", "html"])
def test_written_whole(tmp_path, ending):
    frame = Frame({"name": ["a", "=1+1"], "error": [0.1 + 0.2, 0.25]})
    path = frame.write(tmp_path / f"frame.{ending}")
    if ending == "csv":
        assert path.read_text() == "name,error\na,0.30000000000000004\n'=1+1,0.25\n"
    elif ending == "parquet":
        import polars

        assert Frame.of(polars.read_parquet(path)) == frame
    else:
        assert path.read_text() == getattr(frame, {"md": "to_markdown", "tex": "to_latex", "html": "to_html"}[ending])()


def test_an_empty_frame():
    frame = Frame.from_records([], columns=["a", "b"])
    assert (len(frame), list(frame), repr(frame)) == (0, [], "a  b")
    assert len(Frame({})) == 0
