"""Layer: the values of one YAML file with the line of every key, and how one layer overrides another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cige.errors import RecipeError
from cige.recipes.settings import Settings


@dataclass(frozen=True)
class Layer:
    """Nested settings and where they come from.

    Attributes:
        values: maps names to values or to nested mappings.
        origins: maps key paths ("training.n_epochs") to "file:line" or another description of the origin.
    """

    values: Settings
    origins: dict[str, str]

    def over(self, base: Layer) -> Layer:
        """Merge this layer's settings with those of `base` that it does not state.

        Settings of the network (`model`) are not inherited by another architecture. Words and vectors (`vectors`,
        `lexicon`) are not inherited if this layer starts training from a model, which has its own.
        """
        architecture = base.values.get("architecture")
        dropped = {"model"} if self.values.get("architecture", architecture) != architecture else set()
        if self.values.get("start_from") is not None:
            dropped |= {"vectors", "lexicon"}
        values = {key: value for key, value in base.values.items() if key not in dropped}
        origins = {key: where for key, where in base.origins.items() if key.partition(".")[0] not in dropped}
        return Layer(_merge(values, self.values), origins | self.origins)


def read_layer(path: Path, *, called: str) -> Layer:
    """Read one YAML file; `extends` is left in its values.

    Args:
        called: the name of the file in messages and origins.

    Raises:
        RecipeError: it is not a mapping in UTF-8 YAML, or a key occurs twice; the message has the file and line.
        FileNotFoundError: there is no such file.
    """
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        node = _composed(text)
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as reason:
        raise RecipeError(f"{called}: cannot be read as UTF-8 text ({reason})") from reason
    except yaml.YAMLError as reason:
        line, problem = yaml_problem(reason, text)
        raise RecipeError(f"{called}:{line}: not valid YAML: {problem}") from reason
    except RecursionError as reason:
        raise RecipeError(f"{called}: not a recipe: brackets within brackets, too many of them") from reason
    if not isinstance(node, yaml.MappingNode):
        raise RecipeError(f"{called}: a recipe is a mapping such as `name: ...`, `data: ...`")
    origins: dict[str, str] = {}
    return Layer(_values(node, called, "", origins), origins)


def yaml_problem(reason: Exception, text: str = "") -> tuple[int, str]:
    """The line, from 1, of an error in a YAML text, and in one sentence what PyYAML says of it in several lines."""
    if not isinstance(reason, yaml.MarkedYAMLError) or reason.problem_mark is None:
        position = getattr(reason, "position", 0)  # of a character that YAML cannot hold
        return text.count("\n", 0, position) + 1, str(reason).partition("\n")[0]
    line = reason.problem_mark.line + 1
    if reason.context is None:
        return line, str(reason.problem)
    begin = line if reason.context_mark is None else reason.context_mark.line + 1
    return line, f"{reason.context}{f' (line {begin})' if begin < line else ''}, {reason.problem}"


def _composed(text: str) -> yaml.Node | None:
    """The nodes of a YAML text: from libyaml, which is several times as fast, if PyYAML was built with it."""
    try:
        return yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return yaml.compose(text, Loader=yaml.SafeLoader)  # its errors show the place


def _values(node: yaml.MappingNode, called: str, prefix: str, origins: dict[str, str]) -> Settings:
    values: Settings = {}
    for key_node, value_node in node.value:
        name = str(key_node.value)
        key = f"{prefix}{name}"
        where = f"{called}:{key_node.start_mark.line + 1}"
        if name in values:
            raise RecipeError(f"{where}: key {key!r} is given twice, first at {origins[key]}")
        origins[key] = where
        if isinstance(value_node, yaml.MappingNode):
            values[name] = _values(value_node, called, f"{key}.", origins)
        else:
            values[name] = _scalar(value_node, where)
    return values


def _scalar(node: yaml.Node, where: str) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError) as reason:  # ValueError: of 2020-13-45, which has the form of a date
        raise RecipeError(f"{where}: not a value of YAML: {yaml_problem(reason)[1]}") from reason
    finally:
        loader.dispose()


def _merge(base: Settings, changes: Mapping[str, Any]) -> Settings:
    merged = dict(base)
    for name, value in changes.items():
        old = merged.get(name)
        merged[name] = _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged
