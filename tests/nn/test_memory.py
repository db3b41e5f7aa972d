import ctypes
import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from cige.nn import memory

# Page faults of taking and freeing three arrays ten times, once the heap has found its shape. Arrays of more than
# 32 MB have pages of their own where nothing else was said, smaller ones only if it so happens.
STEPS = """
import resource, torch
from cige.nn.memory import keep_freed_memory
def faults(megabytes):
    def step():
        arrays = [torch.zeros(megabytes << 18) for _ in range(3)]
    for _ in range(5):
        step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults(40), keep_freed_memory(), faults(24))
"""


def printed(code: str, **environment: str) -> list[str]:
    """The words that a program prints in a process with these variables of its allocator alone."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=clean | environment, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_pages_are_asked_for_once():
    faults_without, kept, faults = printed(STEPS)
    assert kept == "True"
    assert int(faults) < 250 < 10 * 3 * 20 <= int(faults_without), "pages have 4 kB, or 2 MB"


def test_what_the_environment_says_is_left_alone():
    code = "from cige.nn.memory import keep_freed_memory; print(keep_freed_memory())"
    assert printed(code, MALLOC_TRIM_THRESHOLD_="1000000") == ["False"]
    assert printed(code, GLIBC_TUNABLES="glibc.malloc.arena_max=1") == ["False"]


@pytest.mark.parametrize(
    ("platform", "environment", "has_mallopt", "answer", "kept"),
    [
        ("linux", {}, True, 1, True),
        ("linux", {}, True, 0, False),  # it refuses
        ("linux", {}, False, 1, False),  # another C library
        ("linux", {"MALLOC_TRIM_THRESHOLD_": "1"}, True, 1, False),
        ("linux", {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}, True, 1, False),
        ("linux", {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}, True, 1, True),
        ("darwin", {}, True, 1, False),
    ],
)
def test_where_memory_is_kept(platform, environment, has_mallopt, answer, kept, monkeypatch):
    for name in list(os.environ):
        if name.startswith(("MALLOC_", "GLIBC_TUNABLES")):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    asked = []
    library = (
        SimpleNamespace(mallopt=lambda *given: asked.append(given) or answer) if has_mallopt else SimpleNamespace()
    )
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: library)
    assert memory.keep_freed_memory() == kept
    is_ours = platform == "linux" and has_mallopt and (kept or not answer)
    assert bool(asked) == is_ours


def test_where_a_gigabyte_is_too_much_older_versions_take_less(monkeypatch):
    asked = []

    def mallopt(name: int, value: int) -> int:
        asked.append((name, value))
        return int((name, value) != (memory.MMAP_THRESHOLD, 1 << 30))

    monkeypatch.setattr(sys, "platform", "linux")
    for name in [name for name in os.environ if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: SimpleNamespace(mallopt=mallopt))
    assert memory.keep_freed_memory()
    assert asked[:2] == [(memory.MMAP_THRESHOLD, 1 << 30), (memory.MMAP_THRESHOLD, 32 << 20)] and len(asked) == 4


def test_zeros_take_memory_where_they_are_written_to():
    found = memory.zeros_on_demand((3, 1 << 20))
    assert found.shape == (3, 1 << 20) and found.dtype == np.float32 and not found.any()
    found[1, 5] = 2
    assert found.sum() == 2 and memory.zeros_on_demand((0, 4)).shape == (0, 4)
