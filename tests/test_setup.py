"""Which compiled parts setup.py builds, by CIGE_BUILD, by platform and by the kind of compiler."""

from __future__ import annotations

import platform
import re
import runpy
import sys
import sysconfig
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from cige import instruction_sets

setuptools = pytest.importorskip("setuptools")
SETUP = Path(__file__).parents[1] / "setup.py"
ALWAYS = [
    "cige.instruction_sets._cpu",
    "cige.lexicon._walk",
    "cige.lexicon._packed",
    "cige.lexicon._parse",
]


@pytest.fixture
def script(monkeypatch) -> dict:
    """The names that setup.py defines."""
    if not SETUP.exists():
        pytest.skip("needs setup.py, which an installed package lacks")
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    monkeypatch.chdir(SETUP.parent)
    monkeypatch.delenv("ARCHFLAGS", raising=False)
    return runpy.run_path(str(SETUP))


@pytest.fixture
def built(monkeypatch) -> Callable[[str | None], list[str]]:
    """The names of the parts that setup.py builds with a value of CIGE_BUILD."""
    if not SETUP.exists():
        pytest.skip("needs setup.py, which an installed package lacks")
    given: dict = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    monkeypatch.chdir(SETUP.parent)

    def names(value: str | None) -> list[str]:
        if value is None:
            monkeypatch.delenv("CIGE_BUILD", raising=False)
        else:
            monkeypatch.setenv("CIGE_BUILD", value)
        runpy.run_path(str(SETUP))
        return [extension.name for extension in given["ext_modules"]]

    return names


@pytest.mark.parametrize("value", [None, "", "all"])
def test_every_level_is_built_unless_told_otherwise(value, built):
    names = built(value)
    levels = {"x86_64": ("avx512", "avx2", "portable"), "aarch64": ("i8mm", "dotprod", "portable")}
    of_runtime = levels.get(platform.machine(), ("portable",))
    of_training = of_runtime if platform.machine() == "x86_64" else ("portable",)
    assert names == [
        *(f"cige.runtime.native._runtime_{level}" for level in of_runtime),
        *(f"cige.nn.native._kernels_{level}" for level in of_training),
        *ALWAYS,
    ]


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="other systems do not list their processor's features")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="one level only")
def test_here_builds_the_level_in_use_and_core_leaves_out_training(built):
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\nflags")[2].partition("\n")[0].split()
    level = "avx512" if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= {*flags} else "avx2"
    level = level if {"avx2", "fma"} <= {*flags} else "portable"
    runtime, training = f"cige.runtime.native._runtime_{level}", f"cige.nn.native._kernels_{level}"
    assert built("here") == [runtime, training, *ALWAYS]
    assert built("core") == [runtime, *ALWAYS]


@pytest.mark.parametrize(
    ("features", "level"),
    [
        ("fp asimd evtstrm aes crc32 cpuid", "portable"),  # Cortex-A72
        ("fp asimd atomics asimdrdm asimddp ssbs", "dotprod"),  # Neoverse N1
        ("fp asimd asimddp i8mm", "dotprod"),
        ("fp asimd asimddp sve i8mm bf16 dgh", "i8mm"),  # Neoverse V1
    ],
)
def test_here_builds_the_level_of_an_arm_processor(built, monkeypatch, features, level):
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "linux-aarch64")
    listed = Path.read_text
    monkeypatch.setattr(Path, "exists", lambda path: True)
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda path, *a, **k: (
            f"processor: 0\nFeatures\t: {features}\n" if path.name == "cpuinfo" else listed(path, *a, **k)
        ),
    )
    training = "cige.nn.native._kernels_portable"
    assert built("here") == [f"cige.runtime.native._runtime_{level}", training, *ALWAYS]
    assert built("core") == [f"cige.runtime.native._runtime_{level}", *ALWAYS]
    of_all = [f"cige.runtime.native._runtime_{name}" for name in ("i8mm", "dotprod", "portable")]
    assert built("all") == [*of_all, training, *ALWAYS]


def test_none_builds_nothing(built):
    assert built("none") == []


def test_other_values_are_errors_that_list_the_known(built):
    with pytest.raises(SystemExit, match="CIGE_BUILD=some: expected all, here, core or none"):
        built("some")


@pytest.mark.parametrize("platform_name", ["linux-x86_64", "win-amd64", "macosx-10.13-x86_64"])
def test_x86_has_all_levels_on_every_system(platform_name, script):
    levels = script["levels_of"](platform_name)
    assert list(levels) == ["portable", "avx2", "avx512"]
    assert all(flags[0] == "-march=x86-64" for flags in levels.values())
    assert {"-mavx2", "-mfma"} < {*levels["avx2"]} < {*levels["avx512"]}


@pytest.mark.parametrize("platform_name", ["linux-aarch64", "win-arm64", "macosx-11.0-arm64"])
def test_arm_has_its_own_levels_on_every_system(platform_name, script):
    levels = script["levels_of"](platform_name)
    assert list(levels) == ["portable", "dotprod", "i8mm"]
    assert levels == script["LEVELS_OF"]["aarch64"]
    assert [flags[-1:] for flags in levels.values()][1:] == [
        ["-march=armv8.2-a+dotprod"],  # GCC gives out the functions of these instructions to ARMv8.2 only
        ["-march=armv8.2-a+dotprod+i8mm+bf16"],
    ]
    assert not any("-mcpu" in flag for flags in levels.values() for flag in flags)


def test_a_build_for_each_architecture_knows_what_its_levels_ask_of_a_processor(script):
    levels = {level for of in script["LEVELS_OF"].values() for level in of}
    assert levels == {*script["FEATURES"]} == {*instruction_sets.LEVELS}
    for of in script["LEVELS_OF"].values():
        assert [*of] == [level for level in instruction_sets.LEVELS if level in of]  # from slow to fast
        asked = [script["FEATURES"][level] for level in of]
        assert all(less < more for less, more in pairwise(asked))
        assert {f"cpu_has_{level}" for level in [*of][1:]} <= {*script["CALLED"]["cpu"]}


@pytest.mark.parametrize("platform_name", ["win32", "linux-riscv64", "linux-i686"])
def test_other_processors_have_one_level_without_flags(platform_name, script):
    assert script["levels_of"](platform_name) == {"portable": []}


def test_both_halves_of_a_universal_library_have_flags_of_their_own(script, monkeypatch):
    levels = script["levels_of"]("macosx-10.13-universal2")
    assert list(levels) == ["portable", "avx2", "avx512", "dotprod", "i8mm"]
    assert levels["portable"][:2] == ["-Xarch_x86_64", "-march=x86-64"]
    assert [*zip(levels["avx2"][::2], levels["avx2"][1::2], strict=True)].count(("-Xarch_x86_64", "-mavx2")) == 1
    assert levels["i8mm"][-2:] == ["-Xarch_arm64", "-march=armv8.2-a+dotprod+i8mm+bf16"]
    assert "-Xarch_arm64" not in levels["avx2"] and "-Xarch_x86_64" not in levels["i8mm"]
    names = script["extensions"].__globals__
    monkeypatch.setitem(names, "LEVELS", levels)
    monkeypatch.setitem(names, "PARTS", "all")
    built = [part.name.rpartition("_kernels_")[2] for part in script["extensions"]() if "_kernels_" in part.name]
    assert built == ["avx512", "avx2", "portable"]  # training has one form for all of arm64
    monkeypatch.setenv("ARCHFLAGS", "-arch arm64")
    assert script["levels_of"]("macosx-10.13-universal2") == script["LEVELS_OF"]["aarch64"]


def test_flags_are_those_of_the_kind_of_compiler(script):
    flags = ["-O3", "-pthread", "-mavx2"]
    assert script["for_compiler"]("unix", flags) == flags
    assert script["for_compiler"]("mingw32", flags) == ["-O3", "-mavx2"]
    assert script["for_compiler"]("msvc", flags) == ["/clang:-O3", "/clang:-mavx2"]


def test_windows_exports_what_python_calls(script):
    from cige.runtime import native

    assert {*script["CALLED"]["runtime"]} == {*native._FUNCTIONS, "layout_of_structs", "source_checksum"}
    exported = {part.name: {*part.export_symbols} for part in script["extensions"]()}
    assert exported["cige.runtime.native._runtime_portable"] == {*script["CALLED"]["runtime"]}
    assert exported["cige.nn.native._kernels_portable"] == {*script["CALLED"]["kernels"]}
    assert exported["cige.instruction_sets._cpu"] == {*script["CALLED"]["cpu"]}


def test_a_part_is_compiled_again_after_a_change_of_any_header_that_it_includes(script):
    def included(file: Path) -> set[str]:
        names = re.findall(r'^#include "(.+)"', file.read_text(encoding="utf-8"), re.MULTILINE)
        found = [(file.parent / name).resolve() for name in names]
        return {str(x) for x in found} | {name for x in found for name in included(x)}

    for part in script["extensions"]():
        needed = {name for source in part.sources for name in included(SETUP.parent / source)}
        assert needed <= {str((SETUP.parent / name).resolve()) for name in part.depends}, part.name


def test_a_mac_tells_its_features_by_sysctl(script, monkeypatch):
    """What a Mac with AVX2 answers; where sysctl says nothing, every level is built."""
    here = script["levels_here"]
    names = here.__globals__
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setitem(names, "LEVELS", script["levels_of"]("macosx-10.13-x86_64"))
    answer = SimpleNamespace(returncode=0, stdout="FPU SSE4.2 FMA AVX1.0\nBMI1 AVX2 ERMS\n")
    monkeypatch.setitem(names, "subprocess", SimpleNamespace(run=lambda *_, **__: answer))
    assert here() == ["avx2"]
    answer.returncode = 1
    assert here() == ["portable", "avx2", "avx512"]
    monkeypatch.setitem(names, "LEVELS", script["levels_of"]("macosx-11.0-arm64"))  # sysctl has no such names there
    assert here() == ["portable", "dotprod", "i8mm"]


class Microsoft:
    """As setuptools' compiler of Windows: its cc is known once it is initialised."""

    compiler_type, initialized = "msvc", False

    def initialize(self, platform_name: str) -> None:
        self.initialized, self.cc = True, "cl.exe"


@pytest.mark.parametrize("there_is_clang", [True, False])
def test_windows_compiles_with_clang_or_not_at_all(there_is_clang, script, monkeypatch):
    command = script["BuildExtensions"](setuptools.Distribution())
    part = setuptools.Extension("part", ["part.c"], extra_compile_args=["-O3", "-pthread"], extra_link_args=["-lm"])
    command.plat_name, command.compiler, command.extensions = "win-amd64", Microsoft(), [part]
    found = SimpleNamespace(which=lambda name, path: f"C:/LLVM/{name}.exe" if there_is_clang else None)
    monkeypatch.setitem(type(command).build_extensions.__globals__, "shutil", found)
    told: list[str] = []
    monkeypatch.setattr(command, "warn", told.append)
    built: list[object] = []
    monkeypatch.setattr(
        setuptools.command.build_ext.build_ext, "build_extensions", lambda self: built.extend(self.extensions)
    )
    command.build_extensions()
    if there_is_clang:
        assert (command.compiler.cc, built, told) == ("C:/LLVM/clang-cl.exe", [part], [])
        assert (part.extra_compile_args, part.extra_link_args) == (["/clang:-O3"], [])
    else:
        assert built == [] and "install LLVM" in told[0]
