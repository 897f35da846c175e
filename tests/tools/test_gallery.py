"""The code of the gallery draws as many pictures as the page shows."""

import importlib.util
import re

import pytest

from tests.tools.test_layers import ROOT

_spec = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "gallery.py")
gallery = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(gallery)


@pytest.mark.full
def test_every_picture_of_the_page_is_drawn_by_it():
    pytest.importorskip("matplotlib")
    shown = re.findall(r"\((gallery-\d+\.svg)\)", gallery.PAGE.read_text(encoding="utf-8"))
    drawn = gallery.pictures()
    assert list(drawn) == shown
    assert all(svg.count("<path") > 5 for svg in drawn.values())
