"""Rows of characters, bigrams and words, as C and NumPy look them up."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_forms import LEVELS

from cige.data.vocabulary import CodeTable, Vocabulary
from cige.lattice.lattice import build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.runtime import native
from cige.runtime.ragged import RowReader


@pytest.mark.parametrize("level", LEVELS)
def test_rows_are_those_of_the_vocabulary(level):
    lexicon = Lexicon.from_words(["南京", "南京市", "长江", "大桥"])
    lexicon.add("市长江")
    codes = np.array(sorted(map(ord, "南京市长江\x00𠮷")), np.int64)
    pairs = np.array([ord("南") << 21 | ord("京"), ord("江") << 21 | 0x1FFFFF, ord("𠮷") << 21 | ord("南")], np.int64)
    vocabulary = Vocabulary(
        chars=CodeTable.from_ordered(codes),
        bigrams=CodeTable.from_ordered(pairs),
        word_rows=np.array([5, 1, 3, 4], np.int32),
        n_tuned=(3, 3, 3),
        n_rows=(20, 20, 20),
    )
    texts = ["南京市长江大桥", "", "𠮷南京\x00", "江", "长江"]
    lattices = [build_lattice(text, lexicon.snapshot()) for text in texts]
    encoded = [vocabulary.encode(lattice) for lattice in lattices]
    for library in (native.load(level), None):
        batch = RowReader(vocabulary, library)(lattices)
        for name in ("chars", "bigrams", "words", "starts", "ends"):
            expected = np.concatenate([getattr(x, name) for x in encoded])
            np.testing.assert_array_equal(getattr(batch, name), expected, err_msg=name)
        assert batch.n_chars.tolist() == [len(text) for text in texts] and batch.labels is None


def test_no_vocabulary_at_all():
    nothing = CodeTable(np.zeros(0, np.int64), np.zeros(0, np.int32))
    vocabulary = Vocabulary(nothing, nothing, np.zeros(0, np.int32), (3, 3, 3), (3, 3, 3))
    lattices = [build_lattice("南京", Lexicon.from_words([]).snapshot())]
    for library in (None, *map(native.load, LEVELS)):
        batch = RowReader(vocabulary, library)(lattices)
        assert batch.chars.tolist() == batch.bigrams.tolist() == [1, 1]
