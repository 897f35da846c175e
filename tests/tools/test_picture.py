"""The picture of the architecture shows the imports, and the one in the docs is up to date."""

import xml.etree.ElementTree as ET

from tests.tools.test_layers import ROOT, real_folders, tree_of
from tools import picture
from tools.tree import Tree

FILES = {
    "profile/__init__.py": "x = 1",
    "lenses/__init__.py": "from truecal.profile import x",
    "estimators/__init__.py": "from truecal.lenses import x\nfrom truecal.profile import x",
    "errors.py": "",
}


def test_arrows_that_follow_from_others_are_left_out(tmp_path):
    imports = picture.folder_imports(tree_of(tmp_path, FILES))
    assert imports["estimators"] == {"lenses", "profile"}
    assert picture.reduction(imports)["estimators"] == {"lenses"}
    assert picture.levels(imports) == {"profile": 0, "lenses": 1, "estimators": 2}


def test_a_new_import_changes_the_picture(tmp_path):
    before = picture.draw(tree_of(tmp_path, FILES))
    (tmp_path / "src" / "truecal" / "lenses" / "__init__.py").write_text("")
    assert picture.draw(Tree.read(tmp_path)) != before


def test_the_picture_in_the_docs_is_up_to_date_well_formed_and_names_every_folder():
    assert picture.main(["--check"]) == 0, "run: make picture"
    svg = (ROOT / picture.PICTURE).read_text(encoding="utf-8")
    texts = " ".join(node.text or "" for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))
    assert all(folder in texts for folder in real_folders())
