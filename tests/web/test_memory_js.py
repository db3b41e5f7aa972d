"""web/memory.js fills structs by the table of the runtime, and says what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from web_build import WEB

NODE = shutil.which("node") or shutil.which("nodejs")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node (apt-get install nodejs)")

TABLE = [
    ["Inner", None, "struct", 0, 16],
    ["Inner", "weight", "float32*", 0, 4],
    ["Inner", "size", "int64", 8, 8],
    ["Outer", None, "struct", 0, 40],
    ["Outer", "label", "int32", 0, 4],
    ["Outer", "inner", "Inner", 8, 16],
    ["Outer", "score", "float64", 24, 8],
    ["Outer", "next", "Inner*", 32, 4],
    ["Model", None, "struct", 0, 4],
    ["Model", "flat", "Flat*", 0, 4],
    ["Problem", None, "struct", 0, 44],
    ["Problem", "part", "text", 0, 4],
    ["Problem", "number", "int64", 4, 8],
    ["Problem", "inner", "text", 12, 4],
    ["Problem", "field", "text", 16, 4],
    *(["Problem", name, "float64", 20 + 8 * k, 8] for k, name in enumerate(("given", "least", "most"))),
    ["BLOCK", None, None, 8, 0],
]


def answer(**given: Any) -> Any:
    command = [NODE, Path(__file__).with_name("memory.mjs"), WEB / "memory.js"]
    done = subprocess.run(command, input=json.dumps({"table": TABLE} | given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_fields_are_written_where_the_table_says():
    inner = {"weight": 4096, "size": -5}
    told = answer(fill=["Outer", {"score": 0.25, "label": -3, "inner": inner, "next": None}])
    assert told["constants"] == {"BLOCK": 8}
    assert {name: told["read"][name] for name in ("label", "score", "next")} == {"label": -3, "score": 0.25, "next": 0}
    assert answer(fill=["Inner", inner])["read"] == inner
    assert answer(fill=["Inner", {"weight": None, "size": True}])["read"] == {"weight": 0, "size": 1}


@pytest.mark.parametrize(
    ("values", "odd"), [({"size": 1}, "weight"), ({"size": 1, "weight": 0, "sizes": 2}, "sizes"), ({}, "weight, size")]
)
def test_fields_that_are_missing_or_not_there_are_named(values, odd):
    told = answer(fill=["Inner", values])
    assert told.startswith(f"struct Inner: {odd}: not filled or not there; cige.wasm is of another build")


@pytest.mark.parametrize(
    ("names", "number", "limits", "told"),
    [
        (["flat.layers", "ff_in", "n_in"], 1, (7, 8, 8), "flat.layers[1].ff_in.n_in is 7; expected 8"),
        (["chain.order", None, None], 2, (-1, 0, 9), "chain.order[2] is -1; expected 0 to 9"),
        (["flat", None, "layers"], -1, (None, 1, 2), "flat.layers is missing"),
    ],
)
def test_what_the_runtime_refuses_is_told(names, number, limits, told):
    problem = {"names": names, "number": number} | dict(zip(("given", "least", "most"), limits, strict=True))
    assert answer(problem=problem) == f"the runtime cannot read this model: {told}"
