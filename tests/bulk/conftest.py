"""Fixtures of the tests of large jobs."""

from __future__ import annotations

from pathlib import Path

import bulk_jobs
import pytest


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text(bulk_jobs.lines(60), encoding="utf-8")
    return path
