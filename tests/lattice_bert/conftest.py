"""Fixtures of the tests of Lattice-BERT."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import tiny_tasks  # with packages that the tests of kernels do without, which .ci/portable runs

    folder = tmp_path_factory.mktemp("pretrained") / "model"
    tiny_tasks.pretrained().save(folder)
    return folder
