"""The parts of cige that may be left out of an installation, and what each of them adds to the core.

The core imports nothing from an extension. It asks here for the kinds of folders, the recipes and the commands that the
installed extensions add.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("cige.lattice_bert",)  # each has a module `extension` with a constant EXTENSION


@dataclass(frozen=True)
class Kind:
    """A kind of model folder.

    Attributes:
        use: what such a folder is for, for error messages if it was given instead of another kind.
        open_finder: loads a model that finds entities, called with (folder, device=); None if the model finds none, or
            if it is a kind of the core, which `cige.load` opens itself.
        load_features: loads an encoder of characters, called with (folder, tuned=, local_only=); None if it is none.
    """

    use: str
    open_finder: Callable[..., Any] | None = None
    load_features: Callable[..., Any] | None = None


@dataclass(frozen=True)
class RecipeKind:
    """A kind of recipe; its files are named KIND/NAME.

    Attributes:
        folder: where the files of those that ship are.
        example: the name of one of them, for error messages.
        resolve: a function (recipe, overrides) that returns its settings, a dataclass, and where each value that is not
            a default comes from.
        command: a function (name without the kind, file of the user's own or None, output) that returns the command
            that runs it; the arguments are quoted for a shell.
    """

    folder: Path
    example: str
    resolve: Callable[[str, list[str]], tuple[Any, dict[str, str]]]
    command: Callable[[str, str | None, str], str]


@dataclass(frozen=True)
class Extension:
    """What a part of cige adds to the core.

    Attributes:
        kinds: kinds of folders, by the name in their manifest.
        recipes: kinds of recipes, by name.
        verbs: verb of the command line -> what it does.
        aliases: former name of a verb -> the words that replaced it.
        chinese: the file of the Chinese help of its verbs and options, in the form of `commands/chinese.json`.
        commands: the package with a module for each verb.
    """

    kinds: Mapping[str, Kind]
    recipes: Mapping[str, RecipeKind]
    verbs: Mapping[str, str]
    aliases: Mapping[str, tuple[str, ...]]
    chinese: Path
    commands: str


def recipe_kinds() -> dict[str, RecipeKind]:
    """The kinds of recipes of all extensions, by name."""
    return {name: kind for added in extensions() for name, kind in added.recipes.items()}


@cache
def extensions() -> tuple[Extension, ...]:
    """The installed extensions."""
    return tuple(import_module(f"{name}.extension").EXTENSION for name in PACKAGES if find_spec(name) is not None)
