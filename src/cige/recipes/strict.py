"""Convert plain values to frozen dataclasses; unknown keys and wrong types are errors."""

from __future__ import annotations

import difflib
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from cige.errors import RecipeError
from cige.recipes.ranges import OutOfRange, check_ranges
from cige.recipes.recipe_file import nested

T = TypeVar("T")

RENAMED = {
    # tagging
    "training.batch_size": "batches.batch_size",
    "training.max_pairs": "batches.max_pairs",
    "training.pool_batches": "batches.pool_batches",
    "training.optimizer": "optimizer.name",
    "training.learning_rate": "optimizer.learning_rate",
    "training.embedding_learning_rate_scale": "optimizer.embedding_learning_rate_scale",
    "training.bert_learning_rate_scale": "optimizer.bert_learning_rate_scale",
    "training.weight_decay": "optimizer.weight_decay",
    "training.momentum": "optimizer.momentum",
    "training.schedule": "schedule.name",
    "training.decay": "schedule.decay",
    "training.warmup_ratio": 'schedule.warmup, such as "5%"',
    "training.warmup_epochs": 'schedule.warmup, such as "10 epochs"',
    "training.clip": "optimizer.clip_norm and optimizer.clip_value",
    "training.clip_threshold": "optimizer.clip_norm or optimizer.clip_value",
    "training.checkpoint_steps": 'checkpoints.every, such as "500 steps"',
    # pre-training
    "optimizer.n_warmup_steps": 'schedule.warmup, such as "500 steps"',
    "optimizer.beta1": "optimizer.betas, such as [0.9, 0.999]",
    "optimizer.beta2": "optimizer.betas, such as [0.9, 0.999]",
    "optimizer.precision": "training.precision",
    "rhythm.log_steps": 'training.log_every, such as "50 steps"',
    "rhythm.eval_steps": 'training.eval_every, such as "500 steps"',
    "rhythm.n_eval_instances": "training.n_eval_instances",
    "rhythm.checkpoint_steps": 'checkpoints.every, such as "500 steps"',
    "rhythm.n_checkpoints": "checkpoints.keep",
    "rhythm.n_workers": "training.n_workers",
    # fine-tuning
    "n_epochs": "training.n_epochs",
    "batch_size": "batches.batch_size",
    "pool_batches": "batches.pool_batches",
    "learning_rate": "optimizer.learning_rate",
    "warmup_ratio": 'schedule.warmup, such as "10%"',
    "weight_decay": "optimizer.weight_decay",
    "clip_norm": "optimizer.clip_norm",
    "precision": "training.precision",
}
"""Maps keys of older versions to their current names."""


def build_strictly(
    cls: type[T],
    values: Mapping[str, Any],
    origins: Mapping[str, str],
    *,
    key: str = "",
    types: Mapping[str, type] | None = None,
    base: Any = None,
) -> T:
    """Build a dataclass, including nested dataclasses, from nested mappings. Raises a RecipeError if a key is unknown
    or missing, or a value has the wrong type or is out of range.

    Args:
        values: one entry per field; fields with a default may be omitted.
        origins: maps key paths to where they were written ("file.yaml:3"), for messages.
        key: the key path of `values` itself.
        types: maps names of fields to the class to build, if the type hint is only a base class.
        base: provides the values of omitted fields instead of the class's defaults. Values that are omitted in the
            mapping of a nested dataclass come from the default of that field.
    """
    if not key:
        refuse_renamed(values, origins)
    known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    hints = _hints(cls) | dict(types or {})  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            path = _join(key, str(name))
            raise RecipeError(f"{_at(origins, path)}unknown key {path!r}; {_nearest(str(name), list(known), key)}")
    built = {}
    for name, field in known.items():
        path = _join(key, name)
        if name in values:
            if (units := field.metadata.get("span")) and type(value := values[name]) in (int, float):
                expected = f'a number with its unit, such as "{value} {units[0]}"'
                raise RecipeError(f"{_at(origins, path)}{path} is {value}, expected {expected}")
            built[name] = _convert(hints[name], values[name], origins, path, _default(field, base))
        elif base is not None:
            built[name] = getattr(base, name)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise RecipeError(f"{_at(origins, key)}key {path!r} is missing; it has no default")
    try:
        made = cls(**built)
        check_ranges(made)
        return made
    except OutOfRange as wrong:
        path = _join(key, wrong.name)
        raise RecipeError(f"{_at(origins, path)}{path} {wrong.problem}") from None


@cache
def _hints(cls: type) -> dict[str, Any]:
    """The types of a dataclass's fields, which Python evaluates from their source."""
    return get_type_hints(cls)


def changed(settings: T, changes: Mapping[str, Any]) -> T:
    """Copy a dataclass with some settings changed by key path ("optimizer.learning_rate"); errors as above."""
    return build_strictly(type(settings), nested(changes), {}, base=settings)


def _default(field: Field[Any], base: Any) -> Any:
    if base is not None:
        return getattr(base, field.name)
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _convert(hint: Any, value: Any, origins: Mapping[str, str], path: str, default: Any = None) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise _wrong(hint, value, origins, path)
        base = default if type(default) is hint else None
        return build_strictly(hint, value, origins, key=path, base=base)  # type: ignore[arg-type]
    if origin in (Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        (inner,) = [a for a in args if a is not type(None)]
        try:
            return _convert(inner, value, origins, path)
        except RecipeError:
            if is_dataclass(inner):
                raise
            raise _wrong(hint, value, origins, path) from None
    if origin is Literal and value in args and any(type(value) is type(a) for a in args):
        return value
    if origin is tuple and isinstance(value, (list, tuple)):
        return tuple(_convert(args[0], item, origins, path) for item in value)
    if origin is dict and isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _convert(args[1], item, origins, _join(path, name)) for name, item in value.items()}
    if hint is float and type(value) in (int, float, str):
        try:
            number = float(value)  # YAML 1.1 reads 1e-3 as a string
        except (ValueError, OverflowError):
            raise _wrong(hint, value, origins, path) from None
        if not math.isfinite(number):  # no setting may be infinite, and range checks do not catch NaN
            raise RecipeError(f"{_at(origins, path)}{path} is {value}, expected a finite number")
        return number
    if type(value) is hint:  # a bool does not count as an int
        return value
    raise _wrong(hint, value, origins, path)


def _wrong(hint: Any, value: Any, origins: Mapping[str, str], path: str) -> RecipeError:
    shown = repr(value) if len(repr(value)) < 80 else repr(value)[:77] + "..."
    return RecipeError(f"{_at(origins, path)}{path} is {shown} ({type(value).__name__}), expected {_describe(hint)}")


def _describe(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return "a mapping with the keys " + ", ".join(f.name for f in fields(hint))
    if origin in (Union, types.UnionType):
        return " or ".join("null" if a is type(None) else _describe(a) for a in args)
    if origin is Literal:
        return "one of " + ", ".join(repr(a) for a in args)
    if origin is tuple:
        return f"a list of {_describe(args[0])}"
    if origin is dict:
        return f"a mapping of names to {_describe(args[1])}"
    return {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}.get(hint, str(hint))


def _nearest(name: str, known: list[str], key: str) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    listing = f"known keys{f' of {key}' if key else ''}: {', '.join(known)}"
    return f"did you mean {_join(key, close[0])!r}? ({listing})" if close else listing


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _at(origins: Mapping[str, str], path: str) -> str:
    while path and path not in origins:
        path = path.rpartition(".")[0]
    return f"{origins[path]}: " if path in origins else ""


def refuse_renamed(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Raise a RecipeError that states the new names if a recipe has keys of older versions."""
    renamed = []
    for section in ("", "config."):  # the folder of a fine-tuning run has its recipe in section `config`
        for old, new in RENAMED.items():
            if _has(values, key := f"{section}{old}"):
                where = f"{origins[key]}: " if key in origins else ""
                renamed.append(f"{where}{key} is now {section}{new}")
    if renamed:
        raise RecipeError("; ".join(renamed))


def _has(values: Any, key: str) -> bool:
    for name in key.split("."):
        if not isinstance(values, Mapping) or name not in values:
            return False
        values = values[name]
    return True
