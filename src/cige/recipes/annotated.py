"""Settings as YAML with a comment on each: where its value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

DEFAULT = "default"
_COLUMN = 44  # where comments begin, unless the setting is longer


def annotated_yaml(values: Mapping[str, Any], origins: Mapping[str, str] | None = None) -> str:
    """Nested settings as YAML, a setting per line.

    Args:
        origins: key path ("training.n_epochs") -> what its comment says; the others are called defaults. Without it
            there are no comments.
    """
    return "".join(f"{line}\n" for line in _lines(values, origins, "", ""))


def _lines(values: Mapping[str, Any], origins: Mapping[str, str] | None, prefix: str, indent: str) -> list[str]:
    found = []
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            found.append(f"{indent}{name}:")
            found += _lines(value, origins, f"{prefix}{name}.", indent + "  ")
            continue
        line = f"{indent}{name}: {_scalar(value)}"
        if origins is not None:
            line = f"{line:<{_COLUMN}}# {origins.get(f'{prefix}{name}', DEFAULT)}"
        found.append(line)
    return found


def _scalar(value: Any) -> str:
    """One value, a list too, on one line."""
    plain = list(value) if isinstance(value, tuple) else value
    text = yaml.safe_dump(plain, allow_unicode=True, default_flow_style=True, width=float("inf"))
    return text.removesuffix("\n").removesuffix("\n...")
