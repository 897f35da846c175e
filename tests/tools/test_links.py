"""Links of the built site that lead nowhere are found."""

from tools import links


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
    assert links.main([str(tmp_path)]) == 0
