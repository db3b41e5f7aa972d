"""Settings of recipes as files state them: one recipe per line, flat keys.

With `like`, a line states only what differs from that recipe, less the keys of `without`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any


def published(path: Path) -> dict[str, dict[str, Any]]:
    """Every setting of each recipe of a file such as `recipes/resolved.json`, by flat keys."""
    found: dict[str, dict[str, Any]] = {}
    for name, stated in json.loads(path.read_text(encoding="utf-8")).items():
        whole = dict(found.get(stated.pop("like", ""), {}))
        for key in stated.pop("without", []):
            del whole[key]
        found[name] = whole | stated
    return found


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = list(value) if isinstance(value, tuple) else value
    return found


def assert_resolved(settings: Any, stated: dict[str, Any]) -> None:
    """Every setting of a recipe, a dataclass, is what is stated; 1 and 1.0 differ."""
    found = flat(asdict(settings))
    assert {key: repr(value) for key, value in found.items()} == {key: repr(value) for key, value in stated.items()}
