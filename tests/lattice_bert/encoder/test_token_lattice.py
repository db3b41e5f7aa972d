"""Token lattices against a slow definition, and the way back to the text."""

import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.token_lattice import TokenLattice
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.text.normalize import normalize

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*SPECIAL, *"研究生活很充实年人ab12，", "##a", "##b", "##1", "##12", "2020", "café", "iphone", "un", "##able"]


def tokenizer(*words: str, **settings) -> LatticeTokenizer:
    return LatticeTokenizer(JointVocabulary.build(PIECES, words), **settings)


def tokens(made: LatticeTokenizer, lattice: TokenLattice) -> list[str]:
    return [made.vocabulary.token(id) for id in lattice.ids.tolist()]


def surfaces(lattice: TokenLattice) -> list[str]:
    return [lattice.text[slice(*lattice.char_span(token))] for token in range(lattice.n_tokens)]


def same(one: TokenLattice, other: TokenLattice) -> bool:
    names = ("ids", "starts", "ends", "piece_starts", "piece_ends")
    pairs = [(getattr(one, name), getattr(other, name)) for name in names]
    return one.text == other.text and all(a.dtype == b.dtype == np.int32 and np.array_equal(a, b) for a, b in pairs)


def test_the_example_of_the_paper():
    made = tokenizer("研究生", "研究", "生活", "充实", "活人")
    lattice = made.tokenize("研究生活很充实")
    assert tokens(made, lattice) == ["研", "究", "研究", "生", "研究生", "活", "生活", "很", "充", "实", "充实"]
    assert lattice.starts.tolist() == [0, 1, 0, 2, 0, 3, 2, 4, 5, 6, 5]
    assert lattice.ends.tolist() == [1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 7]
    assert lattice.is_piece.tolist() == [True, True, False, True, False, True, False, True, True, True, False]
    assert (lattice.n_tokens, lattice.n_pieces) == (11, 7)
    assert surfaces(lattice) == tokens(made, lattice)
    assert lattice.char_spans().tolist() == [list(lattice.char_span(k)) for k in range(11)]


def test_words_never_begin_or_end_inside_a_run():
    made = tokenizer("研ab", "a研", "2020年", "0年", "研究", "iphone12", "phone12", "a1", "，a")
    lattice = made.tokenize("研ab 2020年 a研b ba研 iPhone12 12020年 研a1b，a，ab")
    assert [s for s, is_piece in zip(surfaces(lattice), lattice.is_piece.tolist(), strict=True) if not is_piece] == [
        "研ab",
        "2020年",
        "a研",
        "iPhone12",
        "，a",
    ]


def test_words_do_not_cross_white_space_but_dropped_characters():
    made = tokenizer("研究")
    assert surfaces(made.tokenize("研 究研\n究研\u3000究")) == list("研究研究研究")
    assert surfaces(made.tokenize("研\u200b究")) == ["研", "究", "研\u200b究"]


def test_offsets_of_every_kind_of_text():
    made = tokenizer("研究", "iphone12", "a股研究", "12年", "café人", "研😀究")
    text = "\ud800研\x00究 iPhone１２的Ａ股研究👍🏽 cafe\u0301人 é12年 ㍻ 한 ﬁ 研😀究"
    lattice = made.tokenize(text)
    assert lattice.text == text
    words = [s for s, is_piece in zip(surfaces(lattice), lattice.is_piece.tolist(), strict=True) if not is_piece]
    assert words == ["研\x00究", "iPhone１２", "研究", "Ａ股研究", "cafe\u0301人", "研😀究"]
    assert "👍🏽" in surfaces(lattice) and "한" in surfaces(lattice)


def test_pieces_alone():
    text = "研究生2020年"
    plain, full = tokenizer("研究", use_words=False), tokenizer("研究")
    assert tokens(plain, plain.tokenize(text)) == ["研", "究", "生", "2020", "年"]
    assert tokens(full, full.tokenize(text)) == ["研", "究", "研究", "生", "2020", "年"]
    assert same(plain.tokenize(text), tokenizer().tokenize(text))


@pytest.mark.parametrize("text", ["", " \n", "\u200b\ud800"])
def test_nothing_to_read(text):
    lattice = tokenizer("研究").tokenize(text)
    assert (lattice.text, lattice.n_tokens, lattice.n_pieces) == (text, 0, 0)
    assert lattice.char_spans().shape == (0, 2)


def test_a_long_text_is_read_whole():
    made = tokenizer("研究", "究研", "研究研")
    lattice = made.tokenize("研究" * 100_000)
    assert (lattice.n_pieces, lattice.n_tokens) == (200_000, 200_000 + 199_999 + 99_999)
    assert (np.diff(lattice.ends) >= 0).all()


# ---- against a slow definition

ALPHABET = [
    "研",
    "究",
    "生",
    "活",
    "a",
    "B",
    "1",
    "2",
    "é",
    "，",
    " ",
    "Ａ",
    "\u0301",
    "😀",
    "\u200b",
    "\ud800",
    "年",
    "각",
]


def slow_chars(text: str) -> list[tuple[str, int, int]]:
    """BERT's cleaning by plain loops: (character in normal form, start, end)."""
    found: list[tuple[str, int, int]] = []
    follows = False  # whether the last code point is the last one found, or a mark on it
    for place, char in enumerate(normalize(text)):
        category = unicodedata.category(char)
        if category == "Mn":
            if follows:
                *rest, (last, start, _) = found
                found = [*rest, (last, start, place + 1)]
            continue
        follows = not (category.startswith("C") or char == "\ufffd")
        if follows:
            found += [
                (part.lower(), place, place + 1) for part in unicodedata.normalize("NFD", char) if part != "\u0301"
            ]
    return found


def slow_lattice(made: LatticeTokenizer, text: str) -> list[tuple[int, int, int]]:
    """(id, start, end) of every token: every run of pieces is tried against every word."""
    vocabulary = made.vocabulary
    chars = slow_chars(text)

    def is_alone(char: str) -> bool:
        return "\u4e00" <= char <= "\u9fff" or char == "，"

    runs: list[list[int]] = []  # what is cut into pieces on its own: characters by number
    for k, (char, _, _) in enumerate(chars):
        if char == " ":
            continue
        before = chars[k - 1][0] if k else " "
        if runs and not is_alone(char) and before != " " and not is_alone(before):
            runs[-1].append(k)
        else:
            runs.append([k])
    pieces: list[tuple[int, int, int, bool, bool]] = []  # id, first and last character, begins a run, ends it
    for run in runs:
        cut: list[tuple[int, int, int]] = []
        place = 0
        while place < len(run):
            for end in range(len(run), place, -1):
                piece = "##" * (place > 0) + "".join(chars[k][0] for k in run[place:end])
                if piece in vocabulary and vocabulary.id(piece) < vocabulary.n_pieces:
                    cut.append((vocabulary.id(piece), run[place], run[end - 1]))
                    place = end
                    break
            else:
                cut, place = [(vocabulary.unk_id, run[0], run[-1])], len(run)
        pieces += [(*piece, k == 0, k == len(cut) - 1) for k, piece in enumerate(cut)]
    words = set(vocabulary.words)
    found = [(piece[0], k, k + 1) for k, piece in enumerate(pieces)]
    for start in range(len(pieces)):
        for end in range(start + 2, len(pieces) + 1):
            spelt = "".join(char for char, _, _ in chars[pieces[start][1] : pieces[end - 1][2] + 1])
            if spelt in words and pieces[start][3] and pieces[end - 1][4]:
                found.append((vocabulary.id(spelt), start, end))
    return sorted(found, key=lambda token: (token[2], token[2] - token[1]))


WORDS = st.lists(st.text(st.sampled_from("研究生活ab12，年é"), min_size=1, max_size=5), max_size=12)
TEXTS = st.text(st.sampled_from(ALPHABET), max_size=25)


@given(WORDS, TEXTS)
def test_equal_to_the_slow_definition(words, text):
    made = tokenizer(*words)
    lattice = made.tokenize(text)
    expected = slow_lattice(made, text)
    assert list(zip(lattice.ids.tolist(), lattice.starts.tolist(), lattice.ends.tolist(), strict=True)) == expected


@given(WORDS, TEXTS)
def test_offsets_lead_back_to_what_the_token_says(words, text):
    made = tokenizer(*words)
    lattice = made.tokenize(text)
    spans = lattice.char_spans().tolist()
    for token, (start, end) in zip(tokens(made, lattice), spans, strict=True):
        assert 0 <= start < end <= len(text)
        surface = "".join(char for char, _, _ in slow_chars(text[start:end]))
        if token != "[UNK]" and "각" not in text:  # a piece may be a part of 각
            assert surface == token.removeprefix("##")


@given(WORDS, st.lists(TEXTS, max_size=6))
def test_many_texts_are_read_as_each_alone(words, texts):
    made = tokenizer(*words)
    found = list(made.tokenize_all(texts))
    assert len(found) == len(texts)
    assert all(same(lattice, made.tokenize(text)) for lattice, text in zip(found, texts, strict=True))


def test_many_texts_in_several_blocks():
    made = tokenizer("研究", "生活")
    texts = ["研究生活" * k for k in range(300)]
    assert all(same(a, made.tokenize(text)) for a, text in zip(made.tokenize_all(texts), texts, strict=True))


@pytest.mark.parametrize(
    ("sizes", "expected"), [([], []), ([3], [1]), ([9], [1]), ([4, 4, 1], [2, 1]), ([20, 1, 1], [1, 2])]
)
def test_texts_are_read_in_blocks_of_bounded_size(sizes, expected, monkeypatch):
    monkeypatch.setattr("cige.lattice_bert.encoder.tokenizer._BLOCK_CHARS", 10)
    made, blocks = tokenizer(), []
    usual = made._tokenize_block
    made._tokenize_block = lambda texts: blocks.append(len(texts)) or usual(texts)
    found = list(made.tokenize_all("研" * size for size in sizes))
    assert [lattice.n_pieces for lattice in found] == sizes and blocks == expected


@pytest.mark.parametrize(
    ("words", "use_words", "finds"), [(["研究"], True, True), (["研究"], False, False), ([], True, False)]
)
def test_words_are_looked_for_only_where_there_are_any(words, use_words, finds):
    made = tokenizer(*words, use_words=use_words)
    assert (made._find is not None) == finds
    assert made.tokenize("研究生").n_tokens == (4 if finds else 3)


def test_a_text_without_words_is_its_pieces_and_nothing_is_sorted_in(monkeypatch):
    made = tokenizer("研究")
    pieces = made._cutter.split("生活")
    ids, starts, ends, n_until = made._tokens(pieces)
    assert ids is pieces.ids
    assert (starts.tolist(), ends.tolist(), n_until.tolist()) == ([0, 1], [1, 2], [0, 1, 2])


@given(TEXTS, st.data())
def test_a_part_holds_the_tokens_within(text, data):
    lattice = tokenizer("研究", "究生", "研究生", "12年").tokenize(text)
    start = data.draw(st.integers(0, lattice.n_pieces))
    end = data.draw(st.integers(start, lattice.n_pieces))
    part = lattice.part(start, end)
    rows = zip(lattice.ids.tolist(), lattice.starts.tolist(), lattice.ends.tolist(), strict=True)
    expected = [(id, s - start, e - start) for id, s, e in rows if start <= s and e <= end]
    assert list(zip(part.ids.tolist(), part.starts.tolist(), part.ends.tolist(), strict=True)) == expected
    assert part.text == text and part.n_pieces == end - start
    if part.n_tokens:
        assert part.char_span(0) == (lattice.piece_starts[start], lattice.piece_ends[start])


def test_a_part_beyond_the_text_is_refused():
    lattice = tokenizer().tokenize("研究")
    for start, end in ((-1, 1), (1, 0), (0, 3)):
        with pytest.raises(ValueError, match="of 2"):
            lattice.part(start, end)


def test_other_processes_get_the_same_tokenizer():
    made = tokenizer("研究", use_words=True)
    copy = pickle.loads(pickle.dumps(made))
    assert same(copy.tokenize("研究生2020"), made.tokenize("研究生2020"))
    assert pickle.loads(pickle.dumps(tokenizer("研究", use_words=False))).tokenize("研究").n_tokens == 2
