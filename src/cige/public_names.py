"""Public names of a package that are imported when they are first used, so that its light parts stay light."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any


def imported_on_use(package: str, **names: Collection[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package.

    Args:
        package: its name.
        names: module of the package -> the public names that it has.
    """
    homes = {name: module for module, of_module in names.items() for name in of_module}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
