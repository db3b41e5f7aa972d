"""Which level of instruction sets is taken, by processor, by what was built and by CIGE_KERNELS."""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from cige import instruction_sets
from cige.errors import CigeError
from cige.instruction_sets import LEVELS, chosen, supported
from cige.nn import native as training
from cige.runtime import native as runtime

PARTS = {"training": training, "runtime": runtime}


def module_of(part: str, level: str) -> str:
    """The library of a level; arm64's levels share one of training."""
    if part == "training":
        return f"cige.nn.native._kernels_{training.FORMS.get(level, level)}"
    return f"cige.runtime.native._runtime_{level}"


compiled = pytest.mark.skipif(not supported(), reason="cige was installed without a C compiler")


@pytest.fixture
def wanted(monkeypatch):
    """Set CIGE_KERNELS as if the program began now."""

    def set_variable(value: str | None) -> None:
        monkeypatch.delenv(instruction_sets.VARIABLE, raising=False)
        if value is not None:
            monkeypatch.setenv(instruction_sets.VARIABLE, value)
        _forget()

    yield set_variable
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for part in PARTS.values():
        part.level.cache_clear()


@pytest.fixture
def processor(monkeypatch):
    """A processor with these levels alone, or without a compiled part that could ask it."""

    def set_levels(*names: str) -> None:
        monkeypatch.setattr(instruction_sets, "supported", lambda: names)

    return set_levels


@pytest.mark.parametrize("value", [None, "", "auto"])
@pytest.mark.parametrize(("names", "best"), [((), None), (("portable",), "portable"), (LEVELS, "i8mm")])
def test_the_best_level_is_taken(wanted, names, best, value):
    wanted(value)
    assert chosen(names) == best


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", supported())
def test_a_level_that_is_asked_for_is_taken(wanted, part, name):
    if name not in PARTS[part].levels():
        pytest.skip(f"{name} of {part} was not built")
    wanted(name)
    assert PARTS[part].level() == name
    assert f"/{module_of(part, name).rpartition('.')[2]}." in PARTS[part].load()._name


def test_off_means_no_compiled_part(wanted):
    wanted("off")
    for part in PARTS.values():
        assert part.level() is None and part.load() is None


@pytest.mark.parametrize("part", PARTS)
def test_an_unknown_level_is_an_error_that_lists_the_known(wanted, part):
    wanted("sse9")
    with pytest.raises(
        CigeError, match="CIGE_KERNELS=sse9: expected auto, off, portable, avx2, avx512, dotprod or i8mm"
    ):
        PARTS[part].load()


def test_a_level_that_the_processor_lacks_is_an_error_that_lists_what_it_has(wanted, processor):
    wanted("avx512")
    processor("portable")
    with pytest.raises(CigeError, match=r"avx512: this level cannot run on this processor; .* auto, off, portable$"):
        chosen(["portable"])


@pytest.mark.parametrize(("built", "has"), [((), ()), (("portable",), LEVELS)])
def test_a_level_that_was_not_built_is_an_error(wanted, processor, built, has):
    wanted("avx2")
    processor(*has)
    others = ", ".join(("auto", "off", *built))
    with pytest.raises(CigeError, match=rf"avx2: this level was not built .* {others}$"):
        chosen(built)


def test_a_part_that_was_not_compiled_at_all_has_no_level(wanted, processor):
    """As the kernels of training after `make serve`: the variable chooses the level of the runtime."""
    wanted("avx2")
    processor(*LEVELS)
    assert chosen([]) is None
    wanted("sse9")
    with pytest.raises(CigeError, match="CIGE_KERNELS=sse9: expected auto"):
        chosen([])


@pytest.mark.parametrize(
    ("has", "expected"),
    [
        ((), ("portable",)),
        (("avx2",), LEVELS[:2]),
        (("dotprod",), ("portable", "dotprod")),
        (("i8mm", "dotprod"), ("portable", "dotprod", "i8mm")),
        (LEVELS[1:], LEVELS),
    ],
)
def test_the_processor_is_asked(has, expected, monkeypatch):
    functions = {f"cpu_has_{name}": lambda name=name: int(name in has) for name in LEVELS[1:]}
    monkeypatch.setattr(instruction_sets, "path_of", lambda module: "_cpu.so")
    monkeypatch.setattr(ctypes, "CDLL", lambda path: SimpleNamespace(**functions))
    assert supported.__wrapped__() == expected


def test_nothing_is_supported_where_nothing_was_built(monkeypatch):
    monkeypatch.setattr(instruction_sets, "path_of", lambda module: None)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: pytest.fail("None is the program itself"))
    assert supported.__wrapped__() == ()


def test_nothing_is_supported_where_the_library_is_of_another_machine_or_of_older_sources(monkeypatch, tmp_path):
    foreign = tmp_path / "_cpu.abi3.so"
    foreign.write_bytes(b"\x7fELF of another machine")
    monkeypatch.setattr(instruction_sets, "path_of", lambda module: str(foreign))
    assert supported.__wrapped__() == ()
    monkeypatch.setattr(ctypes, "CDLL", lambda path: SimpleNamespace())
    assert supported.__wrapped__() == ()


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the processor's features are read from /proc/cpuinfo")
@compiled
def test_levels_are_those_of_the_processor():
    needs = {
        "x86_64": {
            "portable": set(),
            "avx2": {"avx2", "fma"},
            "avx512": {"avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq"},
        },
        "aarch64": {"portable": set(), "dotprod": {"asimddp"}, "i8mm": {"asimddp", "i8mm", "bf16"}},
    }.get(platform.machine(), {"portable": set()})
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    has = set(next((x for x in lines if x.startswith(("flags", "Features"))), ":").split(":")[1].split())
    assert supported() == tuple(name for name in needs if needs[name] <= has)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("built", "has", "expected"),
    [
        (LEVELS, LEVELS, LEVELS),
        (LEVELS, LEVELS[:2], LEVELS[:2]),
        (LEVELS, (), ()),
        (("portable",), LEVELS, ("portable",)),
        (("avx512",), LEVELS, ("avx512",)),
        ((), LEVELS, ()),
    ],
)
def test_a_level_must_be_built_and_run_here(part, built, has, expected, processor, monkeypatch):
    processor(*has)
    monkeypatch.setattr(PARTS[part], "_path", lambda name: name if name in built else None)
    monkeypatch.setattr(PARTS[part], "library", lambda name: name)
    stale = built and not has and part == "runtime"  # what asks the processor is missing
    with pytest.warns(runtime.StaleBuildWarning) if stale else nullcontext():
        assert PARTS[part].levels.__wrapped__() == expected


@pytest.mark.parametrize("part", PARTS)
def test_a_library_of_another_machine_is_as_if_it_were_not_there(part, processor, monkeypatch, tmp_path):
    foreign = tmp_path / "portable.abi3.so"
    foreign.write_bytes(b"\x7fELF of another machine")
    processor("portable")
    monkeypatch.setattr(PARTS[part], "_path", lambda name: str(foreign))
    monkeypatch.setattr(PARTS[part], "library", PARTS[part].library.__wrapped__)
    monkeypatch.setattr(PARTS[part], "levels", PARTS[part].levels.__wrapped__)
    monkeypatch.setattr(PARTS[part], "level", PARTS[part].level.__wrapped__)
    with pytest.warns(runtime.StaleBuildWarning, match="cannot be loaded") if part == "runtime" else nullcontext():
        assert PARTS[part].load() is None


def test_a_library_of_older_sources_is_as_if_it_were_not_there(processor, monkeypatch):
    processor("portable")
    monkeypatch.setattr(training, "_path", lambda name: "kernels.so")
    monkeypatch.setattr(ctypes, "CDLL", lambda path: SimpleNamespace(span_attention_forward=SimpleNamespace()))
    monkeypatch.setattr(training, "library", training.library.__wrapped__)
    assert training.levels.__wrapped__() == ()


@pytest.mark.parametrize(
    "name",
    sorted({"cige.instruction_sets._cpu", *(module_of(part, name) for part in PARTS for name in PARTS[part].levels())}),
)
@compiled
def test_each_library_is_a_module_too(name):
    """So that the tools that check and repair wheels can import it."""
    code = f"import {name} as module; print(module.__name__)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == [name]


def test_the_command_reports_the_level(wanted, capsys):
    main = importlib.import_module("cige.cli").main
    wanted("off")
    main(["info"])
    assert " ".join(capsys.readouterr().out.split()).find("compiled kernels none (slower)") > 0
