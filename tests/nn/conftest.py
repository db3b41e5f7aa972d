"""Fixtures of the tests of networks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_bert import write_bert


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert") / "tiny")
