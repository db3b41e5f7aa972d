"""Fixtures that several tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# One thread a test process: several processes share the cores, and sums in one order give equal results in each run.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine must not fail a property: no deadlines, no complaint about slow generation.
settings.register_profile("cige", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cige")

# Tables are as wide as in a pipe, whatever the terminal is, and whatever a test runner says of it to its workers.
os.environ.pop("COLUMNS", None)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, lexicons and vectors; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("CIGE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder} (set CIGE_DATA)")
    return folder


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums in one order, for runs whose numbers must be equal to the bit."""
    import torch  # after OMP_NUM_THREADS is set, and only where a test trains

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
