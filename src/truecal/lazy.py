"""Public names that are loaded from their modules on first use, so that importing a package costs next to nothing."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from truecal.errors import MissingExtraError


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """The `__getattr__` of a package and its sorted public names; `homes` maps modules to the names they are home to.

    A public function may have the name of the module or folder that it lives in: the name always means the function, also after
    the module was imported.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    class Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            if not (isinstance(value, ModuleType) and name in home_of):
                super().__setattr__(name, value)

    sys.modules[package].__class__ = Package

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            found = getattr(import_module(home_of[name]), name)
        except ModuleNotFoundError as error:
            missing = MissingExtraError.behind(error)
            if missing is None:
                raise
            raise missing from error
        setattr(sys.modules[package], name, found)  # from now on without a detour
        return found

    return find, sorted(home_of)
