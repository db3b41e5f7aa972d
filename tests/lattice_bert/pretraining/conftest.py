"""Fixtures of the pre-training tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_corpus

from cige.lattice_bert.pretraining.data import PretrainingData, open_data


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_corpus.data_folder(tmp_path_factory.mktemp("pretraining"), segment_words=True)


@pytest.fixture(scope="session")
def data(data_folder: Path) -> PretrainingData:
    return open_data(data_folder)
