"""Read a recipe of any kind: a shipped name or a YAML file, which may extend either, with overrides on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

from cige.errors import RecipeError
from cige.recipes.settings import Settings
from cige.recipes.shipped import example_of, layers_of, no_such_recipe, shipped
from cige.recipes.yaml_file import Layer, YAMLError, read_layer, yaml_problem, yaml_value

EXTENDS = "extends"
Overrides = Mapping[str, Any] | Sequence[str] | None
DEFAULT = "default"
_COLUMN = 44  # where comments begin, unless the setting is longer


def read_recipe_file(
    recipe: str | Path, overrides: Overrides = None, *, kind: str | None = None
) -> tuple[Settings, dict[str, str]]:
    """The values of a recipe, of everything that it extends and of `overrides` on top, and where each comes from by key
    path. Raises a RecipeError for no such recipe, one of another kind, or bad YAML.

    Args:
        recipe: the name of a shipped recipe (`weibo/flat`) or the path of a YAML file. In a file, `extends` is a name
            or a path, which is relative to the folder of that file.
        overrides: {"training.n_epochs": 2} or ["training.n_epochs=2"].
        kind: the kind that a shipped recipe must have, or the one that a file extends; one of the kinds of `shipped`.
    """
    layer = _read(_as_text(recipe), (), kind)
    values, origins = deepcopy(layer.values), dict(layer.origins)
    for key, value in override_pairs(overrides):
        _set(values, key, value)
        origins[key] = f"override {key}"
    return values, origins


def shipped_base(recipe: str | Path) -> str | None:
    """The shipped recipe that `recipe` is or extends first; None if a file extends none."""
    name, extended_by = _as_text(recipe), None
    seen = set()
    while name not in shipped():
        if name in seen:
            return None
        seen.add(name)
        try:
            base = read_layer(Path(name), called=name).values.get(EXTENDS)
        except FileNotFoundError:
            raise RecipeError(no_such_recipe(name, extended_by=extended_by)) from None
        if not isinstance(base, str):
            return None
        extended_by, name = Path(name), base if base in shipped() else str(Path(name).parent / base)
    return name


def default_name(recipe: str | Path) -> str:
    """The name of a run whose recipe does not state one: `weibo-flat` for weibo/flat, `mine` for mine.yaml."""
    name = _as_text(recipe)
    return shipped()[name].run_name if name in shipped() else Path(recipe).stem


def dump_yaml(recipe: Any) -> str:
    """A dataclass as YAML, with keys in the order of the class."""
    return yaml.safe_dump(_plain(asdict(recipe)), allow_unicode=True, sort_keys=False)


def _as_text(recipe: str | Path) -> str:
    return recipe.as_posix() if isinstance(recipe, Path) else recipe


def _read(recipe: str, extended_by: tuple[Path, ...], kind: str | None) -> Layer:
    if recipe in shipped():
        kind_of_recipe = shipped()[recipe].kind
        if kind is not None and kind != kind_of_recipe:
            expected = f"expected a {kind} recipe, such as {example_of(kind)}"
            raise RecipeError(f"{recipe}: this is a {kind_of_recipe} recipe; {expected}")
        whole = reduce(lambda base, layer: layer.over(base), layers_of(recipe))
        folder = None
    else:
        folder = Path(recipe).parent
        resolved = Path(recipe).resolve()
        if resolved in extended_by:
            raise RecipeError(f"{recipe} extends itself, by way of {' <- '.join(p.name for p in extended_by)}")
        extended_by = (*extended_by, resolved)
        try:
            whole = read_layer(Path(recipe), called=recipe)
        except FileNotFoundError:
            by = extended_by[-2] if len(extended_by) > 1 else None
            raise RecipeError(no_such_recipe(recipe, kind=kind, extended_by=by)) from None
    values = dict(whole.values)
    base = values.pop(EXTENDS, None)
    own_layer = Layer(values, whole.origins)
    if base is None:
        return own_layer
    if not isinstance(base, str):
        raise RecipeError(f"{whole.origins[EXTENDS]}: extends is {base!r}, expected a recipe's name or path")
    return own_layer.over(_read(base if base in shipped() or folder is None else str(folder / base), extended_by, kind))


def override_pairs(overrides: Overrides) -> list[tuple[str, Any]]:
    if overrides is None:
        return []
    if isinstance(overrides, Mapping):
        return list(flat(overrides).items())
    pairs = []
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise RecipeError(f"override {text!r}: expected key=value, such as training.n_epochs=2")
        try:
            pairs.append((key.strip(), yaml_value(value)))
        except YAMLError as reason:
            problem = yaml_problem(reason)[1]
            raise RecipeError(f"override {text!r}: the value is not valid YAML ({problem})") from reason
    return pairs


def flat(settings: Mapping[str, Any], prefix: str = "") -> Settings:
    """Nested settings by key path ("training.n_epochs")."""
    values: Settings = {}
    for name, value in settings.items():
        values |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return values


def nested(settings: Mapping[str, Any]) -> Settings:
    """Settings by key path ("training.n_epochs") as nested mappings."""
    values: Settings = {}
    for key, value in settings.items():
        _set(values, key, value)
    return values


def _set(values: Settings, key: str, value: Any) -> None:
    *parents, name = key.split(".")
    for parent in parents:
        inner = values.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise RecipeError(f"override {key}: {parent!r} is a single value and has no keys")
        values = inner
    values[name] = value


def _plain(value: Any) -> Any:
    """The value with lists for tuples, which YAML does not have."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def annotated_yaml(values: Mapping[str, Any], origins: Mapping[str, str] | None = None) -> str:
    """Nested settings as YAML, a setting per line. `origins` maps key paths ("training.n_epochs") to their comments;
    other settings are marked as defaults. Without origins there are no comments."""
    return "".join(f"{line}\n" for line in _lines(values, origins, "", ""))


def _lines(values: Mapping[str, Any], origins: Mapping[str, str] | None, prefix: str, indent: str) -> list[str]:
    lines = []
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            lines.append(f"{indent}{name}:")
            lines += _lines(value, origins, f"{prefix}{name}.", indent + "  ")
            continue
        line = f"{indent}{name}: {_scalar(value)}"
        if origins is not None:
            line = f"{line:<{_COLUMN}}# {origins.get(f'{prefix}{name}', DEFAULT)}"
        lines.append(line)
    return lines


def _scalar(value: Any) -> str:
    """One value (or list) on one line."""
    text = yaml.safe_dump(_plain(value), allow_unicode=True, default_flow_style=True, width=float("inf"))
    return text.removesuffix("\n").removesuffix("\n...")
