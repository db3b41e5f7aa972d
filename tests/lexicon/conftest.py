"""Fixtures of the tests of lexicons."""

from __future__ import annotations

import nanjing
import pytest

from cige.lexicon.lexicon import Lexicon


@pytest.fixture
def lexicon() -> Lexicon:
    return Lexicon.from_words(nanjing.WORDS, counts=[10, 9, 8, 7, 6, 5])
