"""Large packages that the test which uses them imports, so that collecting the tests does not."""

from importlib import import_module
from typing import Any


class Lazy:
    """A module by name, imported when one of its attributes is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest asks every object of a module for those when it looks for tests
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
