"""Write settings as YAML with a comment on each that states where its value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

DEFAULT = "default"
_COLUMN = 44  # where comments begin, unless the setting is longer


def annotated_yaml(values: Mapping[str, Any], origins: Mapping[str, str] | None = None) -> str:
    """Nested settings as YAML, a setting per line.

    Args:
        origins: maps key paths ("training.n_epochs") to their comments; other settings are marked as defaults. Without
            origins there are no comments.
    """
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
    plain = list(value) if isinstance(value, tuple) else value
    text = yaml.safe_dump(plain, allow_unicode=True, default_flow_style=True, width=float("inf"))
    return text.removesuffix("\n").removesuffix("\n...")
