"""Where the compiled kernels are taken from, and when they are done without."""

from __future__ import annotations

import ctypes
import importlib.util
from types import SimpleNamespace

import pytest

from cige.nn import native

load = native.load.__wrapped__  # as in a new process: what `load` found is kept for good


@pytest.fixture(autouse=True)
def not_turned_off(monkeypatch):
    monkeypatch.delenv("CIGE_NATIVE", raising=False)


class Library:
    """A library that has any function."""

    def __getattr__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace()


@pytest.mark.parametrize(("value", "is_loaded"), [(None, True), ("1", True), ("0", False)])
def test_the_environment_can_turn_them_off(value, is_loaded, monkeypatch):
    if value is not None:
        monkeypatch.setenv("CIGE_NATIVE", value)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace(origin="kernels.so"))
    opened = []
    monkeypatch.setattr(ctypes, "CDLL", lambda path: opened.append(path) or Library())
    assert (load() is not None) == is_loaded
    assert opened == (["kernels.so"] if is_loaded else [])


@pytest.mark.parametrize("spec", [None, SimpleNamespace(origin=None)], ids=["no module", "no file"])
def test_none_where_they_were_not_built(spec, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert load() is None


@pytest.mark.parametrize("content", [b"", b"not a library", b"\x7fELF"])
def test_none_where_they_were_built_for_another_machine(content, tmp_path, monkeypatch):
    (tmp_path / "kernels.so").write_bytes(content)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "kernels.so")))
    assert load() is None


def test_none_where_they_were_built_from_older_sources(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace(origin="kernels.so"))
    monkeypatch.setattr(ctypes, "CDLL", lambda path: SimpleNamespace(span_attention_forward=SimpleNamespace()))
    assert load() is None


def test_they_are_loaded_where_they_were_built():
    spec = importlib.util.find_spec("cige.nn.native._kernels")
    assert (load() is not None) == (spec is not None)
