"""Which compiled parts setup.py builds, by the environment variable CIGE_BUILD."""

from __future__ import annotations

import platform
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

setuptools = pytest.importorskip("setuptools")
SETUP = Path(__file__).parents[1] / "setup.py"
ALWAYS = [
    "cige.instruction_sets._cpu",
    "cige.lexicon._walk",
    "cige.lexicon._packed",
    "cige.lexicon._parse",
]


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
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
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
