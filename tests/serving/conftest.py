"""Fixtures of the tests of the server."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from running_server import server
from served import client_of

import cige
from cige.api import NER


@pytest.fixture(scope="session", autouse=sys.version_info < (3, 13))
def parsing_in_threads() -> Iterator[None]:
    """ast.parse, once more if CPython confuses it with that of another thread.

    Python 3.11 and 3.12 count the depth of both in one place and raise a SystemError, "AST constructor recursion depth
    mismatch" (gh-106905), which says nothing of what is parsed. NumPy parses the header of each .npy file, and tests of
    servers read such files in threads.
    """
    parse = ast.parse

    def parse_again(*source: Any, **options: Any) -> Any:
        for _ in range(9):
            try:
                return parse(*source, **options)
            except SystemError:
                continue
        return parse(*source, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ast, "parse", parse_again)
        yield


@pytest.fixture(scope="module")
def ner() -> NER:
    """The bundled model."""
    return cige.load()


@pytest.fixture(scope="module")
def client(ner: NER) -> Iterator[TestClient]:
    with client_of(ner) as made:
        yield made


@pytest.fixture
def own(ner: NER, tmp_path: Path) -> Iterator[TestClient]:
    """One whose lexicon a test may change."""
    with client_of(ner, lexicon_file=str(tmp_path / "words.json")) as made:
        yield made


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a server in processes of its own."""
    with server() as (client, _):
        yield str(client.base_url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    import page_figures  # with a browser's driver, which other tests do without

    with page_figures.chromium() as found:
        yield found
