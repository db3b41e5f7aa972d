"""What holds for the lattice of any text and any lexicon, and for its drawing."""

import xml.etree.ElementTree as ElementTree

import numpy as np
from flat_lattice import FlatLattice, flatten, recover
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cige.drawing.lattice import Mark, draw_lattice
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.text.normalize import normalize

CHARS = st.sampled_from("南京市长江大桥😀𠮷Ａ１ \n<&")
TEXTS = st.text(CHARS, max_size=25) | st.text(st.characters(exclude_categories=()), max_size=25)
WORDS = st.lists(st.text(st.sampled_from("南京市长江大桥😀𠮷A1"), min_size=2, max_size=5), max_size=12)


@st.composite
def lattices(draw) -> Lattice:
    lexicon = Lexicon.from_words(draw(WORDS))
    lexicon.add(*draw(WORDS))
    return build_lattice(draw(TEXTS), lexicon.snapshot(), max_words_per_char=draw(st.sampled_from([0.0, 1.0, 4.0])))


def splits_run(text: str, place: int) -> bool:
    """Whether a word with an edge here would split a Latin word or a number, such as A1 in A11."""
    pair = text[max(0, place - 1) : place + 1] if place else ""
    return len(pair) == 2 and pair.isascii() and (pair.isalpha() or pair.isdigit())


@settings(deadline=None)
@given(TEXTS, WORDS, WORDS)
@example("A11", [], ["A1"])
def test_every_word_of_the_lexicon_that_stands_in_the_text_is_in_the_lattice(text, words, user_words):
    lexicon = Lexicon.from_words(words)
    lexicon.add(*user_words)
    snapshot = lexicon.snapshot()
    lattice = build_lattice(text, snapshot, max_words_per_char=1000)
    read = normalize(text)
    assert (lattice.text, len(lattice.text), lattice.n_dropped) == (read, len(text), 0)
    expected = {
        (start, start + len(word), is_user)
        for is_user, listed in ((False, words), (True, user_words))
        for word in listed
        for start in range(len(read))
        if read.startswith(word, start) and not (splits_run(read, start) or splits_run(read, start + len(word)))
    }
    rows = lattice.words.tolist()
    assert {(start, end, word >= snapshot.n_base) for start, end, word in rows} == expected
    assert all(read[start:end] == snapshot.word(word) for start, end, word in rows)
    assert rows == sorted(rows) and len(rows) == len(expected)


@settings(deadline=None)
@given(lattices(), st.randoms())
def test_a_lattice_comes_back_from_its_flat_form_in_any_order(lattice, random):
    flat = flatten(lattice)
    assert len(flat.token) == lattice.n_nodes
    order = list(range(lattice.n_nodes))
    random.shuffle(order)
    for spans in (flat, FlatLattice(flat.token[order], flat.head[order], flat.tail[order])):
        text, words = recover(spans)
        assert text == lattice.text and np.array_equal(words, lattice.words)


PAIRS = ["南京", "京南", "南南", "京京"]  # a text of these two characters has more words than its budget allows
LONGER = st.lists(st.text("南京", min_size=2, max_size=5), max_size=12)


@settings(deadline=None)
@given(TEXTS, WORDS, WORDS, st.floats(0, 2))
def test_the_budget_keeps_characters_and_tells_what_it_drops(text, words, user_words, max_words_per_char):
    check_budget(text, words, user_words, max_words_per_char)


@settings(deadline=None)
@given(st.text("南京", min_size=20, max_size=40), LONGER, LONGER, st.floats(0, 0.2))
def test_the_budget_drops_first_what_matters_least(text, words, user_words, max_words_per_char):
    assert check_budget(text, [*PAIRS, *words], user_words, max_words_per_char) > 0


def check_budget(text: str, words: list[str], user_words: list[str], max_words_per_char: float) -> int:
    """The number of words that were dropped."""
    lexicon = Lexicon.from_words(words)
    lexicon.add(*user_words)
    snapshot = lexicon.snapshot()
    full = build_lattice(text, snapshot, max_words_per_char=1000)
    lattice = build_lattice(text, snapshot, max_words_per_char=max_words_per_char)
    assert lattice.text == full.text
    assert lattice.n_words <= int(max_words_per_char * len(text)) + 8
    kept = set(map(tuple, lattice.words.tolist()))
    gone = set(map(tuple, full.words.tolist())) - kept
    is_user_or_has_letters = [w >= full.n_base or any(map(str.isalnum, full.text[a:b])) for a, b, w in gone]
    assert lattice.n_dropped == sum(is_user_or_has_letters) and len(gone) == full.n_words - lattice.n_words
    assert kept <= set(map(tuple, full.words.tolist()))

    def rank(row):  # users' words first, then longer ones, then earlier ones
        return row[2] < snapshot.n_base, row[0] - row[1], row[0]

    if kept and gone:
        assert max(map(rank, kept)) <= min(map(rank, gone))
    return lattice.n_dropped


@settings(deadline=None, max_examples=50)
@given(lattices(), st.integers(60, 400))
def test_any_lattice_can_be_drawn_as_well_formed_xml(lattice, width):
    n = lattice.n_chars
    marks = [Mark(0, 1, "A<b>", "0.5"), Mark(n - 1, n, "B")] if n > 1 else []
    svg = draw_lattice(lattice, marks=marks, width=width)
    ElementTree.fromstring(svg.encode("utf-8"))
