"""Fixtures of the training tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_run


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run.write_data_folder(tmp_path_factory.mktemp("data"))
