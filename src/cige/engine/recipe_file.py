"""Recipe files: YAML that may extend other YAML, with the line of every key, and overrides on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from cige.errors import RecipeError

EXTENDS = "extends"


def read_recipe_file(
    path: Path, overrides: Mapping[str, Any] | Sequence[str] | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The merged values of a recipe file, the files it extends and `overrides`; and key path -> where it stands."""
    values, origins = _read(path, ())
    for key, value in override_pairs(overrides):
        _set(values, key, value)
        origins[key] = f"override {key}"
    return values, origins


def dump_yaml(recipe: Any) -> str:
    """A dataclass as YAML, keys in the order of the class."""
    return yaml.safe_dump(_plain(asdict(recipe)), allow_unicode=True, sort_keys=False)


def _read(path: Path, extended_by: tuple[Path, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    resolved = path.resolve()
    if resolved in extended_by:
        raise RecipeError(f"{path} extends itself, by way of {' <- '.join(p.name for p in extended_by)}")
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except FileNotFoundError:
        by = f" (extended by {extended_by[-1]})" if extended_by else ""
        raise RecipeError(f"{path}: no such recipe{by}; expected a YAML file") from None
    except (OSError, UnicodeDecodeError) as reason:
        raise RecipeError(f"{path}: cannot be read as UTF-8 text ({reason})") from reason
    except yaml.YAMLError as reason:
        raise RecipeError(f"{path}: not valid YAML: {reason}") from reason
    if not isinstance(node, yaml.MappingNode):
        raise RecipeError(f"{path}: a recipe is a mapping such as `name: ...`, `data: ...`")
    origins: dict[str, str] = {}
    values = _values(node, path, "", origins)
    base = values.pop(EXTENDS, None)
    if base is None:
        return values, origins
    if not isinstance(base, str):
        raise RecipeError(f"{origins[EXTENDS]}: extends is {base!r}, expected the path of another recipe")
    base_values, base_origins = _read(path.parent / base, (*extended_by, resolved))
    if values.get("architecture", base_values.get("architecture")) != base_values.get("architecture"):
        base_values.pop("model", None)  # the settings of another network
    return _merge(base_values, values), base_origins | origins


def _values(node: yaml.MappingNode, path: Path, prefix: str, origins: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        name = str(key_node.value)
        key = f"{prefix}{name}"
        where = f"{path}:{key_node.start_mark.line + 1}"
        if name in found:
            raise RecipeError(f"{where}: key {key!r} is given twice, first at {origins[key]}")
        origins[key] = where
        if isinstance(value_node, yaml.MappingNode):
            found[name] = _values(value_node, path, f"{key}.", origins)
        else:
            found[name] = _scalar(value_node, where)
    return found


def _scalar(node: yaml.Node, where: str) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    except yaml.YAMLError as reason:
        raise RecipeError(f"{where}: {reason}") from reason
    finally:
        loader.dispose()


def _merge(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in changes.items():
        old = merged.get(name)
        merged[name] = _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged


def override_pairs(overrides: Mapping[str, Any] | Sequence[str] | None) -> list[tuple[str, Any]]:
    if overrides is None:
        return []
    if isinstance(overrides, Mapping):
        return _flat(overrides, "")
    pairs = []
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise RecipeError(f"override {text!r}: expected key=value, such as training.n_epochs=2")
        try:
            pairs.append((key.strip(), yaml.safe_load(value)))
        except yaml.YAMLError as reason:
            raise RecipeError(f"override {text!r}: the value is not valid YAML ({reason})") from reason
    return pairs


def _flat(values: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for name, value in values.items():
        pairs += _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(f"{prefix}{name}", value)]
    return pairs


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by key path ("training.n_epochs") as nested mappings."""
    values: dict[str, Any] = {}
    for key, value in settings.items():
        _set(values, key, value)
    return values


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    *parents, name = key.split(".")
    for parent in parents:
        inner = values.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise RecipeError(f"override {key}: {parent!r} is a single value, it has no keys of its own")
        values = inner
    values[name] = value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value
