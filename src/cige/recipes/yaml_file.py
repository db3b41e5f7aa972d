"""Layer: the values of one YAML file with the line of every key, and how one layer overrides another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from yaml import YAMLError

from cige.errors import RecipeError
from cige.recipes.settings import Settings
from cige.text.encodings import how_to_convert

MAX_LEVELS = 100  # lists and mappings within one another; libyaml would overflow its stack at some 100,000
# What PyYAML raises for 2020-13-45, !!bool x, !!int "" and the like.
_NO_VALUE = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)


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
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as reason:
        raise RecipeError(f"{called}: cannot be read ({reason})") from reason
    text = ""
    try:
        text = raw.decode("utf-8")
        node = _composed(text)
    except UnicodeDecodeError as reason:
        line = raw.count(b"\n", 0, reason.start) + 1
        problem = f"byte 0x{raw[reason.start]:02x} is not UTF-8; {how_to_convert(raw)}"
        raise RecipeError(f"{called}:{line}: {problem}") from reason
    except YAMLError as reason:
        line, problem = yaml_problem(reason, text)
        raise RecipeError(f"{called}:{line}: not valid YAML: {problem}") from reason
    if not isinstance(node, yaml.MappingNode):
        raise RecipeError(f"{called}: a recipe is a mapping such as `name: ...`, `data: ...`")
    origins: dict[str, str] = {}
    return Layer(_values(node, called, "", origins), origins)


def yaml_value(text: str) -> Any:
    """The value of a YAML text, None if it has none. Whatever is wrong with it is a YAMLError (`yaml_problem`)."""
    node = _composed(text)
    return None if node is None else _value_of(node)


def yaml_problem(reason: YAMLError, text: str = "") -> tuple[int, str]:
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
    """The nodes of a YAML text: from libyaml, which is several times as fast, if PyYAML was built with it.

    They have at most MAX_LEVELS levels and none contains itself, so that functions may call themselves for each level.
    """
    try:
        node = _composed_by(getattr(yaml, "CSafeLoader", yaml.SafeLoader), text)
    except YAMLError:
        node = _composed_by(yaml.SafeLoader, text)  # its errors show the place
    if node is not None:
        _levels(node, {})
    return node


def _composed_by(loader: Any, text: str) -> yaml.Node | None:
    level = 0
    for event in yaml.parse(text, Loader=loader):  # before nodes are made, which takes a call within a call per level
        level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        _check_levels(level, event.start_mark)
    return yaml.compose(text, Loader=loader)


def _levels(node: yaml.Node, known: dict[int, int]) -> int:
    """How many lists and mappings of a node are within one another, with those that it takes from other places (`*m`).
    `known` maps the ids of nodes to their levels, to 0 as long as they are counted."""
    if isinstance(node, yaml.ScalarNode):
        return 0
    if id(node) not in known:
        known[id(node)] = 0
        inner = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1 + max((_levels(one, known) for one in inner), default=0)
        _check_levels(known[id(node)], node.start_mark)
    elif known[id(node)] == 0:
        raise yaml.composer.ComposerError(None, None, "a value contains itself", node.start_mark)
    return known[id(node)]


def _check_levels(level: int, mark: Any) -> None:
    if level > MAX_LEVELS:
        problem = f"more than {MAX_LEVELS} levels of lists and mappings"
        raise yaml.composer.ComposerError(None, None, problem, mark)


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
    try:
        return _value_of(node)
    except YAMLError as reason:
        raise RecipeError(f"{where}: not a value of YAML: {yaml_problem(reason)[1]}") from reason


def _value_of(node: yaml.Node) -> Any:
    loader = _Constructor("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()


class _Constructor(yaml.SafeLoader):
    """Makes values of nodes. What PyYAML raises for some that it cannot make becomes a YAMLError with the place."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except _NO_VALUE as reason:
            tag = f"!!{node.tag.rpartition(':')[2]}"
            problem = (
                str(reason) if isinstance(reason, ValueError) else f"{str(node.value)[:80]!r} is no value of {tag}"
            )
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from reason


def _merge(base: Settings, changes: Mapping[str, Any]) -> Settings:
    merged = dict(base)
    for name, value in changes.items():
        old = merged.get(name)
        merged[name] = _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged
