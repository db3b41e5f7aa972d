"""Fixtures that several tests share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, lexicons and vectors; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("CIGE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder} (set CIGE_DATA)")
    return folder
