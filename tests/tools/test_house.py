"""Every rule of the house fails on a planted violation, names the place, and lets the same code pass where it belongs."""

from pathlib import Path

import pytest

from tools import house
from tools.tree import Tree, folder_of

ROOT = Path(__file__).resolve().parents[2]


def real_folders() -> set[str]:
    """The parts of the package, without a look into its files."""
    top = ROOT / "src" / "truecal"
    parts = (path.relative_to(top).with_suffix("").parts for path in top.rglob("*.py"))
    return {folder_of(".".join(("truecal", *own)).removesuffix(".__init__")) for own in parts} - {""}


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


CLASSES = {
    "estimate/estimator.py": "class Estimator: ...",
    "estimate/sweep.py": "from truecal.estimate.estimator import Estimator\nclass SweepECE(Estimator): ...",
    "estimate/__init__.py": "from truecal.estimate.sweep import SweepECE as SweepECE",
}

# rule, files that break it, what the message must name
PLANTED = [
    (
        "layers",
        {"lens/top.py": "from truecal.estimate import x", "estimate/__init__.py": "x = 1"},
        "lens must not import estimate",
    ),
    (
        "layers",
        {"scores.py": "from truecal.clinical import x", "clinical/__init__.py": "x = 1"},
        "scores must not import clinical",
    ),
    ("layers", {"attic/old.py": "x = 1"}, "'attic' has no layer"),
    ("layers", {"lens/top.py": "import truecal as tc\nx = tc.Profile"}, "may use the public API"),
    (
        "cycles",
        {"lens/a.py": "from truecal.lens.b import x", "lens/b.py": "def f():\n    from truecal.lens.a import y"},
        "truecal.lens.a, truecal.lens.b",
    ),
    (
        "cycles",
        {"lens/__init__.py": '_HOMES = {"truecal.lens.a": "A"}', "lens/a.py": "from truecal.lens import A"},
        "truecal.lens.a",
    ),
    (
        "imports_inside",
        {"lens/a.py": "def f():\n    from truecal.lens.b import x", "lens/b.py": "x = 1"},
        "lens/a.py:2",
    ),
    (
        "dispatch",
        {**CLASSES, "report/page.py": "def f(x):\n    return isinstance(x, (int, SweepECE))"},
        "page.py:2: asks whether something is a SweepECE",
    ),
    ("dispatch", {**CLASSES, "report/page.py": "def f(x):\n    return type(x) is tc.SweepECE"}, "SweepECE"),
    (
        "dispatch",
        {**CLASSES, "report/page.py": "def f(x):\n    match x:\n        case SweepECE(): return 1"},
        "SweepECE",
    ),
    (
        "through_init",
        {"lens/a.py": "from truecal.profile.cut import Cut", "profile/cut.py": "class Cut: ..."},
        "truecal.profile.cut",
    ),
    ("layers", {"lens/top.py": "from truecal import Profile"}, "may use the public API"),
    (
        "names_crossing",
        {
            "lens/a.py": "from truecal.profile import " + ", ".join(f"n{i}" for i in range(91)),
            "profile/__init__.py": "",
        },
        "91 names",
    ),
    ("untyped", {"report/a.py": "x: dict[str, Any]\n" * 4, "cli/b.py": "x: dict[str, Any]\n" * 2}, "6 dict[str, Any]"),
    ("prefixes", {f"study/{name}.py": "" for name in ("grid", "grid_a", "grid_b", "grid_c")}, "begin with 'grid'"),
    ("crowds", {f"study/{'abcdefghijklmnop'[i]}.py": "" for i in range(16)}, "16 files"),
    ("crowds", {"study/utils.py": ""}, "name the idea"),
    ("sizes", {"lens/a.py": "x = 1\n" * 401}, "401 lines"),
    ("sizes", {"lens/a.py": "def f():\n" + "    x = 1\n" * 60}, "f has 61 lines"),
    ("sizes", {"lens/a.py": "class A:\n    def f(self, " + ", ".join("abcdefghi") + "): ..."}, "f takes 9 arguments"),
]


@pytest.mark.parametrize(
    ("rule", "files", "says"), PLANTED, ids=[f"{rule}-{i}" for i, (rule, _, _) in enumerate(PLANTED)]
)
def test_planted_violations_are_found(tmp_path, rule, files, says):
    violations = house.check(tree_of(tmp_path, files))
    assert any(says in message for message in violations[rule]), violations


# What the same rules must let pass.
ALLOWED = [
    {"estimate/a.py": "from truecal.lens import x", "lens/__init__.py": "x = 1"},
    {"cli/a.py": "def f():\n    from truecal.lens import x", "lens/__init__.py": "x = 1"},
    {"train/a.py": "def f():\n    from truecal.train.nets import x", "train/nets.py": "import torch\nx = 1"},
    {
        "train/a.py": "def f():\n    from truecal.train.b import x",
        "train/b.py": "from truecal.train.nets import x",
        "train/nets.py": "import torch\nx = 1",
    },
    {
        "report/a.py": "import truecal as tc\nx = tc.InputError",
        "__init__.py": "from truecal.errors import InputError",
        "errors.py": "class InputError: ...",
    },
    {"lens/a.py": "from truecal.profile import cut\nx = cut.Cut", "profile/cut.py": "class Cut: ..."},
    {"lens/a.py": "from truecal import options", "options.py": "x = 1"},
    {**CLASSES, "estimate/sweep.py": CLASSES["estimate/sweep.py"] + "\ndef f(x):\n    return isinstance(x, SweepECE)"},
    {**CLASSES, "report/a.py": "def f(x):\n    return isinstance(x, Estimator)"},
    {"lens/a.py": "def f(self, " + ", ".join("abcdefgh") + "): ...\n" + "x = 1\n" * 399},
    {"lens/a.py": "def f():\n" + "    x = 1\n" * 59},
    {f"study/{name}.py": "" for name in ("grid", "grid_a", "grid_b", "gridded")},
]


@pytest.mark.parametrize("files", ALLOWED)
def test_what_the_rules_allow_passes(tmp_path, files, monkeypatch):
    monkeypatch.setattr(house, "EXCEPTIONS", {})
    assert not any(house.check(tree_of(tmp_path, files)).values())


def test_every_rule_has_a_planted_violation():
    assert {rule for rule, _, _ in PLANTED} == {rule.__name__ for rule in house.RULES}


def test_exceptions_are_honoured_give_a_reason_and_go_when_not_needed(tmp_path, monkeypatch):
    tree = tree_of(tmp_path, {"lens/a.py": "def f(" + ", ".join("abcdefghi") + "): ..."})
    monkeypatch.setattr(house, "EXCEPTIONS", {"lens/a.py:f arguments": "a reason"})
    assert not list(house.sizes(tree))
    monkeypatch.setattr(house, "EXCEPTIONS", {"lens/a.py:f arguments": "a reason", "lens/b.py": "gone"})
    assert ["lens/b.py" in message for message in house.sizes(tree)] == [True]


def test_a_docstring_does_not_count_as_lines_of_a_function(tmp_path):
    text = "def f():\n" + '    """A long\n' + "    text.\n" * 40 + '    """\n' + "    x = 1\n" * 59
    tree = tree_of(tmp_path, {"lens/a.py": text})
    assert not [message for message in house.sizes(tree) if "lens/a.py" in message]


def test_reasons_are_given():
    assert all(len(reason.split()) > 2 for reason in house.EXCEPTIONS.values())


def test_the_exit_code_says_whether_all_is_well(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(house, "EXCEPTIONS", {})
    tree_of(tmp_path, {"study/utils.py": ""})
    assert house.main([str(tmp_path)]) == 1
    assert "src/truecal/study/utils.py: name the idea in it [crowds]" in capsys.readouterr().out
    assert house.main([str(tmp_path), "--report"]) == 0
    (tmp_path / "src" / "truecal" / "study" / "utils.py").unlink()
    assert house.main([str(tmp_path)]) == 0


def test_layers_cover_the_real_tree_and_nothing_else():
    folders = real_folders()
    assert folders == {folder for row in house.LAYERS for folder in row}
