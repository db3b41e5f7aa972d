"""Model inputs: special tokens, positions, types, the way back, and truncation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice_bert.encoder import token_inputs
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = JointVocabulary.build(
    [*SPECIAL, *"研究生活很充实年", "2020", "ab", "##c"], ["研究", "研究生", "生活", "2020年"]
)
TOKENIZER = LatticeTokenizer(VOCABULARY)


def tokens(inputs) -> str:
    return " ".join(VOCABULARY.token(id) for id in inputs.ids.tolist())


def test_one_text():
    inputs = TOKENIZER.encode("研究生abc")
    assert tokens(inputs) == "[CLS] 研 究 研究 生 研究生 ab ##c [SEP]"
    assert inputs.starts.tolist() == [0, 1, 2, 1, 3, 1, 4, 5, 6]
    assert inputs.ends.tolist() == [0, 1, 2, 2, 3, 3, 4, 5, 6]
    assert inputs.types.tolist() == [0] * 9
    assert inputs.sides.tolist() == [-1, *[0] * 7, -1]
    assert inputs.char_starts.tolist() == [-1, 0, 1, 0, 2, 0, 3, 5, -1]
    assert inputs.char_ends.tolist() == [-1, 1, 2, 2, 3, 3, 5, 6, -1]
    assert inputs.chain(0).tolist() == [1, 2, 4, 6, 7] and inputs.chain(1).tolist() == []
    assert (inputs.n_tokens, inputs.n_positions, inputs.n_cut_first, inputs.n_cut_second) == (9, 7, 0, 0)
    names = ("ids", "starts", "ends", "types", "char_starts", "char_ends")
    assert {getattr(inputs, name).dtype for name in names} == {np.dtype(np.int32)}


def test_two_texts():
    inputs = TOKENIZER.encode("很 充", "2020年")
    assert tokens(inputs) == "[CLS] 很 充 [SEP] 2020 年 2020年 [SEP]"
    assert inputs.starts.tolist() == [0, 1, 2, 3, 4, 5, 4, 6]
    assert inputs.ends.tolist() == [0, 1, 2, 3, 4, 5, 5, 6]
    assert inputs.types.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert inputs.sides.tolist() == [-1, 0, 0, -1, 1, 1, 1, -1]
    assert inputs.char_starts.tolist() == [-1, 0, 2, -1, 0, 4, 0, -1]
    assert inputs.char_ends.tolist() == [-1, 1, 3, -1, 4, 5, 5, -1]
    assert inputs.chain(1).tolist() == [4, 5]


def test_empty_texts():
    assert tokens(TOKENIZER.encode("")) == "[CLS] [SEP]"
    assert tokens(TOKENIZER.encode("", " ")) == "[CLS] [SEP] [SEP]"
    assert TOKENIZER.encode("", "").types.tolist() == [0, 0, 1]


def test_a_part_of_a_lattice_keeps_the_offsets_of_its_text():
    part = TOKENIZER.tokenize("很研究生活").part(1, 4)
    inputs = TOKENIZER.encode("充", part)
    assert tokens(inputs) == "[CLS] 充 [SEP] 研 究 研究 生 研究生 [SEP]"
    assert inputs.char_starts.tolist()[3:8] == [1, 2, 1, 3, 1]


@pytest.mark.parametrize(
    ("budget", "expected", "n_cut"),
    [
        ({}, "[CLS] 研 究 研究 生 研究生 活 生活 [SEP] 很 充 [SEP]", (0, 0)),
        ({"max_chars": 9}, "[CLS] 研 究 研究 生 研究生 活 生活 [SEP] 很 充 [SEP]", (0, 0)),
        ({"max_chars": 8}, "[CLS] 研 究 研究 生 研究生 [SEP] 很 充 [SEP]", (1, 0)),
        ({"max_chars": 7}, "[CLS] 研 究 研究 [SEP] 很 充 [SEP]", (2, 0)),
        ({"max_chars": 6}, "[CLS] 研 究 研究 [SEP] 很 [SEP]", (2, 1)),  # of equals, the second is cut
        ({"max_chars": 5}, "[CLS] 研 [SEP] 很 [SEP]", (3, 1)),
        ({"max_chars": 4}, "[CLS] 研 [SEP] [SEP]", (3, 2)),
        ({"max_chars": 3}, "[CLS] [SEP] [SEP]", (4, 2)),
        ({"max_tokens": 11}, "[CLS] 研 究 研究 生 研究生 [SEP] 很 充 [SEP]", (1, 0)),
        ({"max_tokens": 8}, "[CLS] 研 究 研究 [SEP] 很 充 [SEP]", (2, 0)),
        ({"max_tokens": 9, "max_chars": 6}, "[CLS] 研 究 研究 [SEP] 很 [SEP]", (2, 1)),
    ],
)
def test_truncation_cuts_the_longer_text_from_its_end(budget, expected, n_cut):
    inputs = TOKENIZER.encode("研究生活", "很充", **budget)
    assert tokens(inputs) == expected
    assert (inputs.n_cut_first, inputs.n_cut_second) == n_cut


@pytest.mark.parametrize(("budget", "is_met"), [({}, True), ({"max_tokens": 12}, True), ({"max_tokens": 11}, False)])
def test_how_much_to_cut_is_searched_only_where_the_budget_is_not_met(budget, is_met, monkeypatch):
    calls = []
    usual = token_inputs._shares
    monkeypatch.setattr(token_inputs, "_shares", lambda sizes, total: calls.append(total) or usual(sizes, total))
    inputs = TOKENIZER.encode("研究生活", "很充", **budget)
    assert (inputs.n_cut_first == 0) == is_met and (len(calls) == 1) == is_met


TEXTS = st.text(st.sampled_from("研究生活充 "), max_size=14)


@given(TEXTS, TEXTS | st.none(), st.none() | st.integers(3, 30), st.none() | st.integers(3, 20))
def test_truncation_one_piece_at_a_time(first, second, max_tokens, max_chars):
    """The slow way: cut a piece, build anew, look whether it fits."""
    sides = [TOKENIZER.tokenize(text) for text in (first, second) if text is not None]
    sizes = [side.n_pieces for side in sides]
    while True:
        parts = [side.part(0, size) for side, size in zip(sides, sizes, strict=True)]
        n_special = len(sides) + 1
        fits = max_tokens is None or sum(part.n_tokens for part in parts) + n_special <= max_tokens
        if fits and (max_chars is None or sum(sizes) + n_special <= max_chars):
            break
        longest = max(range(len(sizes)), key=lambda side: (sizes[side], side))
        sizes[longest] -= 1
    inputs = TOKENIZER.encode(first, second, max_tokens=max_tokens, max_chars=max_chars)
    expected = TOKENIZER.encode(*parts)
    for name in ("ids", "starts", "ends", "types", "sides", "char_starts", "char_ends"):
        assert np.array_equal(getattr(inputs, name), getattr(expected, name)), name
    cut = [side.n_pieces - size for side, size in zip(sides, sizes, strict=True)]
    assert [inputs.n_cut_first, inputs.n_cut_second] == [*cut, 0][:2]
    assert inputs.n_positions == sum(sizes) + n_special


def test_no_room_for_the_special_tokens():
    for budget in ({"max_tokens": 2}, {"max_chars": 2}):
        with pytest.raises(ValueError, match=r"=2: expected at least 3"):
            TOKENIZER.encode("研", "究", **budget)
    assert tokens(TOKENIZER.encode("研", max_chars=2)) == "[CLS] [SEP]"
