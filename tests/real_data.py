"""Where the logits of real models are: in tests/data after `make data FROM=<folder>`, or in ../shared/data beside the clone."""

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_PLACES = (_ROOT / "tests" / "data", _ROOT.parent / "shared" / "data", _ROOT.parent.parent / "shared" / "data")


def real_data(name: str) -> Path:
    """The file of that name; where it is absent, the place that `make data` would put it."""
    return next((position / name for position in _PLACES if (position / name).is_file()), _PLACES[0] / name)


def how_to_get(name: str) -> str:
    """The reason a test is skipped, with the remedy."""
    return f"needs {name}: run `make data FROM=<folder that holds it>`"
