"""Which level of the kernels is taken, by processor and by CIGE_KERNELS; every level is a library of its own."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import kernel_forms
import pytest

from cige.errors import CigeError
from cige.nn import native


@pytest.fixture
def wanted(monkeypatch):
    """Set CIGE_KERNELS as if the program began now."""

    def set_variable(value: str | None) -> None:
        monkeypatch.delenv(native.VARIABLE, raising=False)
        if value is not None:
            monkeypatch.setenv(native.VARIABLE, value)
        native.level.cache_clear()

    yield set_variable
    monkeypatch.undo()
    native.level.cache_clear()


@pytest.fixture
def processor(monkeypatch):
    """A processor, and an installation, with these levels alone."""

    def set_levels(*names: str) -> None:
        monkeypatch.setattr(native, "levels", lambda: names)

    return set_levels


@pytest.mark.parametrize("value", [None, "", "auto"])
@pytest.mark.parametrize(("names", "best"), [((), None), (("portable",), "portable"), (native.LEVELS, "avx512")])
def test_the_best_level_is_taken(wanted, processor, names, best, value):
    wanted(value)
    processor(*names)
    assert native.level() == best


@pytest.mark.parametrize("name", kernel_forms.LEVELS)
def test_a_level_that_is_asked_for_is_taken(wanted, name):
    wanted(name)
    assert native.level() == name
    assert f"_kernels_{name}." in native.load()._name


def test_off_means_pytorch(wanted):
    wanted("off")
    assert native.level() is None and native.load() is None


def test_an_unknown_level_is_an_error_that_lists_the_known(wanted):
    wanted("sse9")
    with pytest.raises(CigeError, match="CIGE_KERNELS=sse9: expected auto, off, portable, avx2 or avx512"):
        native.load()


@pytest.mark.skipif(not kernel_forms.LEVELS, reason="cige was installed without a C compiler")
def test_a_level_that_the_processor_lacks_is_an_error_that_lists_what_it_has(wanted, processor, monkeypatch):
    wanted("avx512")
    processor("portable")
    monkeypatch.setattr(native, "_path", lambda name: "somewhere")
    with pytest.raises(CigeError, match=r"avx512: this level cannot run on this processor; .* auto, off, portable$"):
        native.level()


def test_a_level_that_was_not_built_is_an_error(wanted, processor, monkeypatch):
    wanted("avx2")
    processor()
    monkeypatch.setattr(native, "_path", lambda name: None)
    with pytest.raises(CigeError, match=r"avx2: this level was not built .* auto, off$"):
        native.level()


def test_no_level_without_the_portable_one(monkeypatch):
    monkeypatch.setattr(native, "_path", lambda name: None)
    native.levels.cache_clear()
    try:
        assert native.levels() == () and native.levels.__wrapped__() == ()
    finally:
        monkeypatch.undo()
        native.levels.cache_clear()


def test_a_library_of_another_machine_is_as_if_it_were_not_there(monkeypatch, tmp_path):
    foreign = tmp_path / "_kernels_portable.abi3.so"
    foreign.write_bytes(b"\x7fELF of another machine")
    monkeypatch.setattr(native, "_path", lambda name: str(foreign))
    native.levels.cache_clear()
    native.library.cache_clear()
    try:
        assert native.levels() == ()
    finally:
        monkeypatch.undo()
        native.levels.cache_clear()
        native.library.cache_clear()


def test_a_library_of_older_sources_is_as_if_it_were_not_there(monkeypatch):
    monkeypatch.setattr(native, "_path", lambda name: "kernels.so")
    monkeypatch.setattr(ctypes, "CDLL", lambda path: SimpleNamespace(span_attention_forward=SimpleNamespace()))
    monkeypatch.setattr(native, "library", native.library.__wrapped__)
    assert native.levels.__wrapped__() == ()


@pytest.mark.parametrize(
    ("built", "has", "expected"),
    [
        (native.LEVELS, ("avx2", "avx512"), native.LEVELS),
        (native.LEVELS, ("avx2",), ("portable", "avx2")),
        (native.LEVELS, (), ("portable",)),
        (("portable",), ("avx2", "avx512"), ("portable",)),
        (("portable", "avx512"), ("avx2", "avx512"), ("portable", "avx512")),
        (("avx2", "avx512"), ("avx2", "avx512"), ()),
    ],
)
def test_a_level_must_be_built_and_run_here(built, has, expected, monkeypatch):
    functions = {f"cpu_has_{name}": lambda name=name: int(name in has) for name in native.LEVELS[1:]}
    monkeypatch.setattr(native, "_path", lambda name: name if name in built else None)
    monkeypatch.setattr(native, "library", lambda name: SimpleNamespace(**functions))
    assert native.levels.__wrapped__() == expected


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the processor's features are read from /proc/cpuinfo")
@pytest.mark.skipif(not kernel_forms.LEVELS, reason="cige was installed without a C compiler")
def test_levels_are_those_of_the_processor():
    if platform.machine() != "x86_64":
        assert native.levels() == ("portable",)
        return
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    has = set(next(line for line in lines if line.startswith("flags")).split(":")[1].split())
    needs = {
        "portable": set(),
        "avx2": {"avx2", "fma"},
        "avx512": {"avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq"},
    }
    assert native.levels() == tuple(name for name in native.LEVELS if needs[name] <= has)


@pytest.mark.parametrize("name", kernel_forms.LEVELS)
def test_each_library_is_a_module_too(name):
    """So that the tools that check and repair wheels can import it."""
    code = f"import cige.nn.native._kernels_{name} as module; print(module.__name__)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == [f"cige.nn.native._kernels_{name}"]


def test_the_command_reports_the_level(wanted, capsys):
    from cige.cli import main

    wanted("off")
    main(["info"])
    assert re.search(r"compiled kernels +none \(slower\)", capsys.readouterr().out)
