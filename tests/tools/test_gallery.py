"""The code of the gallery draws as many pictures as the page shows."""

import re

import pytest

from tools.site import gallery


@pytest.mark.full
def test_every_picture_of_the_page_is_drawn_by_it():
    pytest.importorskip("matplotlib")
    matches = re.findall(r"\((gallery-\d+\.svg)\)", gallery.PAGE.read_text(encoding="utf-8"))
    drawn = gallery.pictures()
    assert list(drawn) == matches
    assert all(svg.count("<path") > 5 for svg in drawn.values())
