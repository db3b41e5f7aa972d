import os
import platform
import subprocess
import sys

import pytest

# Page faults of taking and freeing three arrays forty times, once the heap has found its shape. Arrays of more than
# 32 MB have pages of their own where nothing else was said, smaller ones only if it so happens.
STEPS = """
import resource, torch
from cige.nn.memory import keep_freed_memory
kept = {keep} and keep_freed_memory()
def step():
    arrays = [torch.zeros({megabytes} << 18) for _ in range(3)]
for _ in range(10):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(40):
    step()
print(bool(kept), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def steps(*, keep: bool, megabytes: int = 24, **environment: str) -> tuple[bool, int]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    command = [sys.executable, "-c", STEPS.format(keep=keep, megabytes=megabytes)]
    out = subprocess.run(command, env=clean | environment, check=True, capture_output=True, text=True).stdout.split()
    return out[0] == "True", int(out[1])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_pages_are_asked_for_once():
    kept, faults = steps(keep=True)
    _, faults_without = steps(keep=False, megabytes=40)
    assert kept
    assert faults < 1_000 < 40 * 3 * 20 <= faults_without, "pages have 4 kB, or 2 MB"


def test_what_the_environment_says_is_left_alone():
    assert not steps(keep=True, MALLOC_TRIM_THRESHOLD_="1000000")[0]
    assert not steps(keep=True, GLIBC_TUNABLES="glibc.malloc.arena_max=1")[0]
