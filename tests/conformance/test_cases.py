"""The conformance cases: well formed, what the exact definitions give, answered by truecal without exception, independent of it."""

import ast
import json
from fractions import Fraction
from pathlib import Path

import pytest

from conformance import make, run
from conformance.exact.numbers import rounded

FOLDER = Path(make.__file__).parent
CASES = list(run.cases())


def test_there_are_a_few_hundred_cases_with_names_of_their_own():
    assert len(CASES) >= 500
    assert len({case["id"] for case, _ in CASES}) == len(CASES)
    assert f"{len(CASES)} cases" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", make.FILES)
def test_files_follow_the_schema(name):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
    document = json.loads((FOLDER / "cases" / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({**document, "version": 2})


@pytest.mark.parametrize("name", make.FILES)
def test_files_hold_what_the_definitions_give(name):
    assert make.main(["--check", name]) == 0


@pytest.mark.parametrize("name", make.FILES)
def test_truecal_agrees(name):
    """Every case of a file; those that fail are listed with what was expected and what was found."""
    failed = {}
    for case, data in run.cases(name):
        expected, result = float(case["expected"]["value"]), run.answer(case, data)
        if result != pytest.approx(expected, rel=case["tolerance"], abs=case["tolerance"]):
            failed[case["id"]] = (expected, result)
    assert not failed


def test_every_definition_and_lens_has_cases():
    schema = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))["$defs"]
    assert {case["definition"]["name"] for case, _ in CASES} == set(schema["definition"]["properties"]["name"]["enum"])
    assert {c["lens"]["name"] for c, _ in CASES if "lens" in c} == set(schema["lens"]["properties"]["name"]["enum"])


def test_the_exact_implementation_shares_no_code_with_the_package():
    for path in (*(FOLDER / "exact").glob("*.py"), FOLDER / "make.py", FOLDER / "datasets.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"truecal", "numpy", "scipy"}, path


def test_datasets_written_differently_have_the_same_answers():
    def answers(data: str) -> dict[str, str]:
        return {
            json.dumps([c["definition"], c.get("lens")]): c["expected"]["value"] for c, _ in CASES if c["data"] == data
        }

    for one, other in (("ties", "shuffled ties"), ("counts", "repeated")):
        first, second = answers(one), answers(other)
        shared = first.keys() & second.keys()
        assert len(shared) > 15
        assert {key: first[key] for key in shared} == {key: second[key] for key in shared}


def test_rounding_to_a_precision_is_that_of_the_machine():
    numpy = pytest.importorskip("numpy")
    for numerator in range(1, 60):
        x = Fraction(numerator, 59)
        for precision in ("float16", "float32", "float64"):
            assert float(rounded(x, precision)) == float(numpy.dtype(precision).type(numerator / 59))
