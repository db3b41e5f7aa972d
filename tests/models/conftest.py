"""Fixtures of the tests of models."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tiny


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    tiny.model().save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    shutil.copytree(saved, tmp_path / "model")
    return tmp_path / "model"
