"""Fixtures of the tests of the server."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

import pytest


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
