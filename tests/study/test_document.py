"""YAML with lines: what is read, what is refused, and in which words."""

import pytest

import truecal as tc
from truecal.study.document import read_document


def written(folder, text):
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def test_values_keep_their_lines(tmp_path):
    top = read_document(written(tmp_path, "bins: [5, 15]\nmodels:\n  - name: a\n    size: 1.5\n"))
    assert top.value == {"bins": [5, 15], "models": [{"name": "a", "size": 1.5}]}
    assert top.line("models", 0, "size") == 4
    assert top.line("models", 0, "family") == 3  # of what it is missing from


@pytest.mark.parametrize(
    ("text", "words"),
    {
        "empty": ("", "is empty"),
        "not yaml": ("a: [1, 2", r"study.yaml:1: this is not YAML"),
        "twice": ("a: 1\nb: 2\na: 3\n", r"study.yaml:3: 'a' is given twice \(first on line 1\)"),
        "alias": ("a: &x [1]\nb: *x\n", "anchors and aliases"),
        "endless alias": ("a: &x [*x]\n", "anchors and aliases"),
        "python scalar": ("a: !!python/name:os.getcwd ''\n", "not YAML"),
    }.values(),
)
def test_refused(tmp_path, text, words):
    with pytest.raises(tc.InputError, match=words):
        read_document(written(tmp_path, text))


def test_a_tag_calls_nothing(tmp_path):
    text = f"a: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n"
    assert read_document(written(tmp_path, text)).value == {"a": [f"{tmp_path}/made"]}
    assert not (tmp_path / "made").exists()


def test_all_problems_at_once(tmp_path):
    document = read_document(written(tmp_path, "bins: yes\nlenss: 3\nseeds: [1, 1]\nsplit: {fit: all}\n"))
    schema = {
        "title": "a study",
        "type": "object",
        "required": ["models"],
        "additionalProperties": False,
        "properties": {
            "bins": {"type": "integer", "description": "a whole number"},
            "lens": {},
            "models": {},
            "seeds": {"type": "array", "uniqueItems": True},
            "split": {
                "type": "object",
                "properties": {"fit": {"enum": ["clean"], "errorMessage": {"enum": "fit what?"}}},
            },
        },
    }
    with pytest.raises(tc.InputError) as raised:
        document.check(schema)
    text = str(raised.value)
    assert "5 problems" in text
    assert "study.yaml:1: bins must be a whole number, not True" in text
    assert "study.yaml:1: a study needs 'models'" in text
    assert "study.yaml:2: a study has no option 'lenss'; did you mean 'lens'?" in text
    assert "study.yaml:3: seeds: 1 is listed twice" in text
    assert "study.yaml:4: fit what?" in text
