"""Fixtures of the tests of Lattice-BERT."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_tasks


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained") / "model"
    tiny_tasks.pretrained().save(folder)
    return folder
