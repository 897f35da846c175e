"""Links of the built site that lead nowhere are found; the names of `truecal.train` need torch."""

import pytest

from tests.lazy import Lazy

links = Lazy("tools.links")


@pytest.fixture(autouse=True)
def _torch():
    pytest.importorskip("torch")


def test_missing_pages_pictures_and_anchors_are_found(tmp_path, capsys):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#here">b</a><a href="https://example.org">c</a>'
    )
    (tmp_path / "b.html").write_text(
        '<p id="here">B</p><img src="x.png"><a href="a.html#gone">a</a><a href="c.html">c</a>'
    )
    assert list(links.broken(tmp_path)) == ["b.html: x.png", "b.html: a.html#gone (no such anchor)", "b.html: c.html"]
    assert links.main([str(tmp_path)]) == 1
    assert "3 broken links" in capsys.readouterr().out
    (tmp_path / "b.html").write_text('<p id="here">B</p>')
    assert list(links.broken(tmp_path)) == []


def test_every_public_name_needs_an_entry(tmp_path, capsys):
    names = [name for space in links.SPACES for name in space.__all__]
    (tmp_path / "a.html").write_text("".join(f'<h2 id="truecal.{name}">x</h2>' for name in names if name != "SweepECE"))
    assert list(links.undocumented(tmp_path)) == ["truecal.SweepECE has no entry in docs/api"]
    assert links.main([str(tmp_path)]) == 1
    (tmp_path / "b.html").write_text('<h2 id="truecal.estimators.SweepECE">x</h2>')
    assert links.main([str(tmp_path)]) == 0
    assert "0 broken links, 0 public names" in capsys.readouterr().out
