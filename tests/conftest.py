"""Fixtures that several tests share."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:  # a test that needs no model does not wait for PyTorch
    from cige.api import NER

# One thread a test process: several processes share the cores, and sums in one order give equal results in each run.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Bytecode is kept, whatever the environment says: several processes collect all tests, and hundreds that tests start
# import the same packages; compiling them again would take half of a minute in each of the former alone.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A busy machine must not fail a property: no deadlines, no complaint about slow generation.
settings.register_profile("cige", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cige")

# Tables are as wide as in a pipe and without colours, whatever the terminal is, whatever a test runner says of it to
# its workers, and whatever colours a service that runs tests asks for.
for _name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "PYTHON_COLORS"):
    os.environ.pop(_name, None)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, lexicons and vectors; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("CIGE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder} (set CIGE_DATA)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_disks() -> Iterator[None]:
    """Files stay in the memory of the operating system, where a killed process loses none: only a power cut would.

    Tests write tens of thousands, and a disk takes milliseconds to confirm each. Processes that tests start wait.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: os.fstat(handle) and None)  # a handle that is none is an error still
        yield


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums in one order, for runs whose numbers must be equal to the bit."""
    import torch  # after OMP_NUM_THREADS is set, and only where a test trains

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def ner() -> NER:
    """A small tagger that knows the names of `tiny.sentences`; its lexicon stays as it is."""
    import tiny

    from cige.api import NER

    return NER(tiny.trained_model())


@pytest.fixture
def own_ner() -> NER:
    """One whose lexicon a test may change."""
    import tiny

    from cige.api import NER

    return NER(tiny.trained_model())


@pytest.fixture
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """The language of help and messages, whatever that of this machine is."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], english: None) -> Callable[..., tuple[object, str, str]]:
    """Run a command; gives its exit code, standard output and standard error."""
    from cige.cli import main

    def run_command(*argv: object) -> tuple[object, str, str]:
        try:
            code = main([str(a) for a in argv])
        except SystemExit as stop:  # argparse
            code = stop.code
        return code, *capsys.readouterr()

    return run_command


# ---- the order of tests, and what tests of several modules share


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and tests stay until the end, so the garbage collector never has to go through them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share the cluster of Ray come first and in a row: modules that need nothing else, and then others."""
    n_tests, n_users = Counter(), Counter()
    for item in items:
        n_tests[item.path] += 1
        n_users[item.path] += needs_ray(item)
    items.sort(key=lambda item: (n_users[item.path] == 0) + (n_users[item.path] < n_tests[item.path]))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if needs_ray(item) and not (nextitem and needs_ray(nextitem)):
        import bulk_engines

        bulk_engines.end_ray_cluster()


def needs_ray(item: pytest.Item) -> bool:
    return "ray_cluster" in getattr(item, "fixturenames", ())


@pytest.fixture
def ray_cluster() -> Any:
    """Ray, connected to a small cluster, which ends when the next test does not need it."""
    import bulk_engines

    return bulk_engines.ray_cluster()
