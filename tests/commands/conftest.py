"""Fixtures of the tests of commands."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny

from cige.api import NER
from cige.data import write_sentences


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("cli") / "model"
    NER(tiny.trained_model()).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "test.bmes"
    write_sentences(path, tiny.sentences(12, seed=4))
    return str(path)


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def set_stdin(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))

    return set_stdin
