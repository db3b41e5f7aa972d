"""Fixtures of the training tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_run
import torch


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run.write_data_folder(tmp_path_factory.mktemp("data"))


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
