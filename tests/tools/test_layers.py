"""Every rule of tools/layers.py fails on a planted violation, names the place, and lets the same code pass where it belongs."""

from pathlib import Path

import pytest

from tools import layers
from tools.tree import Tree, folder_of

ROOT = Path(__file__).resolve().parents[2]


def real_folders() -> set[str]:
    """The parts of the package, without a look into its files."""
    top = ROOT / "src" / "truecal"
    parts = (path.relative_to(top).with_suffix("").parts for path in top.rglob("*.py"))
    return {folder_of(".".join(("truecal", *own_values)).removesuffix(".__init__")) for own_values in parts} - {""}


@pytest.fixture(autouse=True)
def rows(monkeypatch):
    """Four layers whose names do not depend on those of the package; `right` and `left` share one."""
    monkeypatch.setattr(layers, "LAYERS", (("top",), ("left", "right"), ("middle",), ("ground",)))


def tree_of(tmp_path: Path, files: dict[str, str]) -> Tree:
    """A package with these files; folders get an __init__ of their own."""
    top = tmp_path / "src" / "truecal"
    for name, text in {"__init__.py": "", **files}.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for parent in path.relative_to(top).parents:
            if not (top / parent / "__init__.py").exists():
                (top / parent / "__init__.py").write_text("")
    return Tree.read(tmp_path)


SHAPES = {
    "middle/shape.py": "class Shape: ...",
    "middle/circle.py": "from truecal.middle.shape import Shape\nclass Circle(Shape): ...",
}

# rule, files that break it, what the message must name
PLANTED = [
    ("layers", {"ground/a.py": "from truecal.middle import x", "middle/__init__.py": "x = 1"}, "ground/a.py:1: ground"),
    ("layers", {"left.py": "from truecal.right import x", "right/__init__.py": "x = 1"}, "left must not import right"),
    ("layers", {"ground/a.py": "def f():\n    from truecal.top import x", "top.py": "x = 1"}, "ground/a.py:2"),
    (
        "layers",
        {
            "ground/a.py": "import truecal as tc\nx = tc.Shape",
            "__init__.py": "from truecal.middle.shape import Shape",
            **SHAPES,
        },
        "ground/a.py:2: ground must not import middle (Shape)",
    ),
    ("layers", {"attic/old.py": "x = 1"}, "src/truecal/attic: has no layer"),
    (
        "cycles",
        {
            "middle/a.py": "from truecal.middle.b import x",
            "middle/b.py": "def f():\n    from truecal.middle.a import y",
        },
        "truecal.middle.a, truecal.middle.b",
    ),
    (
        "cycles",
        {"middle/__init__.py": '_HOMES = {"truecal.middle.a": "A"}', "middle/a.py": "from truecal.middle import A"},
        "truecal.middle.a",
    ),
    (
        "bases",
        {**SHAPES, "middle/shape.py": "def f():\n    from truecal.middle.circle import Circle\nclass Shape: ..."},
        "middle/shape.py:2: the module of Shape must not import its subclass Circle",
    ),
    (
        "bases",  # by a name that the folder exports
        {**SHAPES, "middle/shape.py": "from truecal.middle import Circle\nclass Shape: ..."},
        "the module of Shape must not import its subclass Circle",
    ),
    (
        "bases",  # a base with a parameter
        {
            "middle/shape.py": "from truecal.middle import circle\nclass Shape(Generic): ...",
            "middle/circle.py": "from truecal.middle import shape\nclass Circle(shape.Shape[int]): ...",
        },
        "the module of Shape must not import its subclass Circle",
    ),
]


@pytest.mark.parametrize(
    ("rule", "files", "says"), PLANTED, ids=[f"{rule}-{i}" for i, (rule, _, _) in enumerate(PLANTED)]
)
def test_planted_violations_are_found(tmp_path, rule, files, says):
    violations = layers.check(tree_of(tmp_path, files))
    assert any(says in message for message in violations[rule]), violations


# What the same rules must let pass.
ALLOWED = [
    {"middle/a.py": "from truecal.ground import x", "ground/__init__.py": "x = 1"},
    {"top/a.py": "def f():\n    from truecal.ground import x", "ground/__init__.py": "x = 1"},
    {
        "top/a.py": "import truecal as tc\nx = tc.Shape",
        "__init__.py": "from truecal.middle.shape import Shape",
        **SHAPES,
    },
    {**SHAPES, "middle/use.py": "from truecal.middle.circle import Circle"},
    {"middle/both.py": "class Shape: ...\nclass Circle(Shape): ..."},
]


@pytest.mark.parametrize("files", ALLOWED)
def test_what_the_rules_allow_passes(tmp_path, files):
    assert not any(layers.check(tree_of(tmp_path, files)).values())


def test_every_rule_has_a_planted_violation():
    assert {rule for rule, _, _ in PLANTED} == {rule.__name__ for rule in layers.RULES}


def test_the_exit_code_says_whether_all_is_well(tmp_path, capsys):
    tree_of(tmp_path, {"attic/old.py": ""})
    assert layers.main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == (
        "src/truecal/attic: has no layer; add it to tool.layers in pyproject.toml [layers]\n"
    )
    for path in (tmp_path / "src" / "truecal" / "attic").iterdir():
        path.unlink()
    assert layers.main([str(tmp_path)]) == 0


def test_layers_cover_the_real_tree_and_nothing_else(monkeypatch):
    monkeypatch.undo()
    assert {folder for row in layers.LAYERS for folder in row} == real_folders()
