"""Lattice: characters and the words over them, within a budget."""

import numpy as np
import pytest

from cige.errors import LexiconError
from cige.lattice.lattice import MAX_WORDS_PER_CHAR, build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.snapshot import LexiconSnapshot


def rows(lattice, snapshot):
    return [(start, end, snapshot.word(word)) for start, end, word in lattice.words.tolist()]


class Rows(LexiconSnapshot):
    """A lexicon that matches the same rows in any text."""

    n_base = 2
    user_labels = ()

    def __init__(self, n_words: int) -> None:
        self.rows = np.array([[0, 2, k % 3] for k in range(n_words)], np.int32).reshape(-1, 3)

    def match(self, text: str) -> np.ndarray:
        return self.rows


@pytest.mark.parametrize(("n_words", "n_dropped"), [(0, 0), (16, 0), (17, 1)])
def test_only_a_text_over_the_budget_has_its_words_sorted(n_words, n_dropped):
    lexicon = Rows(n_words)
    lattice = build_lattice("字字", lexicon)  # room for 4 words a character and 8 more
    assert (lattice.n_words, lattice.n_dropped) == (n_words - n_dropped, n_dropped)
    assert (lattice.words is lexicon.rows) == (n_dropped == 0)


def test_all_overlapping_words():
    snapshot = Lexicon.from_words(["南京", "南京市", "市长", "长江", "长江大桥", "大桥", "北京"]).snapshot()
    lattice = build_lattice("南京市长江大桥", snapshot)
    assert rows(lattice, snapshot) == [
        (0, 2, "南京"), (0, 3, "南京市"), (2, 4, "市长"), (3, 5, "长江"), (3, 7, "长江大桥"), (5, 7, "大桥"),
    ]  # fmt: skip
    assert (lattice.n_chars, lattice.n_words, lattice.n_nodes, lattice.n_dropped) == (7, 6, 13, 0)


def test_the_text_is_normalised_and_offsets_stay():
    snapshot = Lexicon.from_words(["IBM", "😀😀"]).snapshot()
    lattice = build_lattice("\ud800😀😀ＩＢＭ", snapshot)
    assert lattice.text == "\ufffd😀😀IBM"
    assert rows(lattice, snapshot) == [(1, 3, "😀😀"), (3, 6, "IBM")]


def test_a_user_word_that_is_a_base_word_is_there_twice():
    lexicon = Lexicon.from_words(["南京"])
    lexicon.add("南京")
    lattice = build_lattice("南京", lexicon.snapshot())
    assert lattice.words.tolist() == [[0, 2, 0], [0, 2, 1]]
    assert lattice.is_user.tolist() == [False, True]


def test_no_words_and_no_text():
    snapshot = Lexicon.from_words(["南京"]).snapshot()
    for text in ("", "北方"):
        lattice = build_lattice(text, snapshot)
        assert lattice.words.shape == (0, 3) and lattice.words.dtype == np.int32


def test_a_lexicon_is_read_as_it_is_now():
    lexicon = Lexicon.from_words(["南京"])
    lexicon.add("京市", label="LOC")
    lattice, expected = build_lattice("南京市", lexicon), build_lattice("南京市", lexicon.snapshot())
    assert lattice.words.tolist() == expected.words.tolist() == [[0, 2, 0], [1, 3, 1]]
    assert lattice.labelled_words == [(1, "LOC")]


@pytest.mark.parametrize("given", [5, None, ["南京"], "南京"])
def test_what_is_no_lexicon_is_refused(given):
    with pytest.raises(LexiconError, match=f"expected a Lexicon, such as ner.lexicon .*got {type(given).__name__}"):
        build_lattice("南京市", given)


def test_words_of_punctuation_alone_are_left_out_without_being_counted():
    lexicon = Lexicon.from_words(["-" * n for n in range(2, 42)])
    text = "-" * 200
    lattice = build_lattice(text, lexicon)
    assert lattice.n_words == int(MAX_WORDS_PER_CHAR * 200) + 8 < len(lexicon.match(text))
    assert lattice.n_dropped == 0
    lexicon.add("-" * 42, *("-" * n for n in range(2, 41)))
    n_own = sum(200 - n + 1 for n in (*range(2, 41), 42))
    lattice = build_lattice(text, lexicon)
    assert lattice.is_user.all() and lattice.n_dropped == n_own - lattice.n_words
    mixed = Lexicon.from_words(["哈" * n for n in range(2, 42)] + ["-" * n for n in range(2, 42)])
    expected = build_lattice("哈" * 100, mixed, max_words_per_char=0).n_dropped
    lattice = build_lattice("哈" * 100 + text, mixed, max_words_per_char=0)
    assert lattice.n_dropped == expected > 3000


def test_30000_overlapping_words_are_cut_to_the_budget_and_counted():
    lexicon = Lexicon.from_words(["哈" * n for n in range(2, 42)])
    lexicon.add("哈哈")
    snapshot = lexicon.snapshot()
    text = "哈" * 790
    assert len(snapshot.match(text)) > 30_000
    lattice = build_lattice(text, snapshot)
    assert lattice.text == text
    assert lattice.n_words == int(MAX_WORDS_PER_CHAR * 790) + 8
    assert lattice.n_dropped == len(snapshot.match(text)) - lattice.n_words
    assert lattice.is_user.sum() == 789  # all the user's own stay
    lengths = lattice.words[:, 1] - lattice.words[:, 0]
    assert lengths[~lattice.is_user].min() > 30  # of the others the longest
    assert lattice.words.tolist() == sorted(lattice.words.tolist())
