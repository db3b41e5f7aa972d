"""JSON that every reader of JSON can read, and that nothing is written without."""

import ast
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_modules import MODULES, SOURCE

from cige.json_text import to_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def strictly(text: str):
    """The value of a JSON text; fails on NaN, Infinity and -Infinity, which Python's reader takes."""

    def refuse(name: str):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def with_null(value):
    if isinstance(value, dict):
        return {key: with_null(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_null(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_is_not_a_number_is_null_and_all_else_stays(value, ensure_ascii, indent):
    assert strictly(to_json(value, indent=indent, ensure_ascii=ensure_ascii)) == with_null(value)


def test_form():
    assert (
        to_json({"乙": (1, math.nan), "甲": [math.inf, -math.inf, 0.5]}) == '{"乙": [1, null], "甲": [null, null, 0.5]}'
    )
    assert to_json({"b": 1, "a": "词"}, sort_keys=True, ensure_ascii=True) == '{"a": "\\u8bcd", "b": 1}'
    with pytest.raises(TypeError, match="a key of a JSON object is nan"):
        to_json({math.nan: 1})
    with pytest.raises(TypeError, match="not JSON serializable"):
        to_json([math.nan, {1, 2}])


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_nothing_else_writes_json(path):
    """`json.dump`, `json.dumps` and `JSONEncoder` write NaN unless they are told not to; `to_json` never does."""
    if path.name == "json_text.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {"dump", "dumps", "JSONEncoder"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "json":
            assert node.attr not in names, f"{path}:{node.lineno}: use cige.json_text.to_json"
        elif isinstance(node, ast.ImportFrom) and node.module == "json":
            assert not names & {alias.name for alias in node.names}, f"{path}:{node.lineno}: use to_json"
        elif isinstance(node, ast.Import):
            assert not any(a.name == "json" and a.asname for a in node.names), (
                f"{path}:{node.lineno}: import it as json"
            )
