"""JSON as the standard has it: the one place where this project turns values into JSON text.

Python's own `json.dumps` writes NaN and Infinity, which are no JSON: browsers, jq and other languages refuse the whole
file. Here a number that does not exist (an accuracy where nothing was asked, say) is written as null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON with any names and values."""


def to_json(value: Any, *, indent: int | None = None, ensure_ascii: bool = False, sort_keys: bool = False) -> str:
    """The JSON text of `value`, with null for every float that is NaN or infinite.

    Args:
        indent, ensure_ascii, sort_keys: as in `json.dumps`.

    Raises:
        TypeError: something that JSON has no form for, as in `json.dumps`; also a key that is NaN or infinite.
    """
    dumps = partial(json.dumps, allow_nan=False, indent=indent, ensure_ascii=ensure_ascii, sort_keys=sort_keys)
    try:
        return dumps(value)
    except ValueError:  # nearly all values are finite, so only the others pay for the walk
        return dumps(_finite(value))


def json_bytes(value: Any, **options: Any) -> bytes:
    """The same in UTF-8, with the options of `to_json`; texts with lone surrogates, which it lacks, are escaped."""
    try:
        return to_json(value, **options).encode("utf-8")
    except UnicodeEncodeError:
        return to_json(value, **options, ensure_ascii=True).encode("ascii")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        for key in value:
            if isinstance(key, float) and not math.isfinite(key):
                raise TypeError(f"a key of a JSON object is {key}, expected a finite number or a text")
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
