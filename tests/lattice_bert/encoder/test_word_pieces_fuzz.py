"""Random texts through our word pieces and those of the tokenizers library: they differ in four named ways only."""

from __future__ import annotations

import random
import unicodedata
from functools import cache

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from cige.lattice_bert.encoder.word_pieces import WordPieces
from cige.text.normalize import fold_width

LETTERS = "abcxyz019éßж"
CHINESE = "中国北京研究㐀𠮷"
PUNCTUATION = ".,()$^，。！（—"
VOCABULARY = [
    "[PAD]",
    "[UNK]",
    *PUNCTUATION,
    *CHINESE,
    *LETTERS,
    *(f"##{c}" for c in LETTERS),
    "e",
    "##e",
    "ab",
    "##12",
]
VOCABULARY += ["\u1100", "##\u1161", "か", "##か", "ア"]

FULL_WIDTH = "Ａｂ０９＄．＾｀～＂"
MARKS = "\u0301\u0327\u0308\u20dd\ufe0f\u3099\u0e31"
# Beyond Unicode 8, by what we take them for; the stand-in is of that class in Unicode 8 too.
NEW_MARKS = "\u08d4\u08df\u1ac1\u1df6\u1dfb\U0001e944\u0898\u07fd"
NEW_CONTROLS = "\u08e2\u0890\U00013430"
NEW_PUNCTUATION = "\u2e43\u2e4f\u09fd\u0c77\u1b7d\U0001e95e"
NEW_LETTERS = "\u1734\u166d"  # once a mark, once punctuation
NEW_CHINESE = "\U0002ceb0\U0002ebe0\U00030000\U00031350"
STAND_INS = {
    **dict.fromkeys(NEW_MARKS, "\u0301"),
    **dict.fromkeys(NEW_CONTROLS, "\u200b"),
    **dict.fromkeys(NEW_PUNCTUATION, "\u2020"),  # in no vocabulary, as those
    **dict.fromkeys(NEW_LETTERS, "\u0259"),
    **dict.fromkeys(NEW_CHINESE, "\u4e01"),
}
for char in NEW_MARKS + NEW_CONTROLS + NEW_PUNCTUATION + NEW_LETTERS:  # an older Python does not know them all
    of_letters = char in NEW_LETTERS and unicodedata.category(char) in ("Mn", "Po")
    if unicodedata.category(char) == "Cn" or of_letters:
        del STAND_INS[char]
OTHERS = "\x00\x07\x0b\x85\t\n \u200b\u200d\ufeff\ufffd\ue000\u3000\u2028\xa0ÅİΣςǅ½ﬁ가각힣😀👍🏽№™アガが゛豈#[]"
ANY = "".join(chr(code) for code in range(0x20, 0x3000) if unicodedata.category(chr(code)) not in ("Cn", "Cs"))
# Blocks whose characters are all of one kind: ideographs, Hangul syllables and private use.
ALIKE = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF)]
ALIKE += [(0x20000, 0x2A6DF), (0x2A700, 0x2CEAF), (0x2CEB0, 0x2EBE0), (0x30000, 0x3134A), (0x31350, 0x323AF)]
POOLS = [LETTERS + "eÉÀ", CHINESE, PUNCTUATION, MARKS, OTHERS, OTHERS, FULL_WIDTH, "".join(STAND_INS)]
OURS = WordPieces(VOCABULARY, unk_id=1)


def texts(n: int, *, seed: int) -> list[str]:
    rng = random.Random(seed)

    def char() -> str:
        return rng.choice(ANY if rng.random() < 0.15 else rng.choice(POOLS))

    return ["".join(char() for _ in range(rng.randint(1, 14))) for _ in range(n)]


@pytest.fixture(scope="module")
def reference() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece({p: k for k, p in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def ours(text: str) -> list[tuple[int, int, int]]:
    found = OURS.split(text)
    return list(zip(found.ids.tolist(), found.starts.tolist(), found.ends.tolist(), strict=True))


def theirs(reference: Tokenizer, text: str) -> list[tuple[int, int, int]]:
    found = reference.encode(text)
    return [(number, start, end) for number, (start, end) in zip(found.ids, found.offsets, strict=True)]


def is_newer(reference: Tokenizer, char: str) -> bool:
    """Whether the library takes a mark, a control or a punctuation mark of our Unicode for a letter, or the reverse."""
    category = unicodedata.category(char)
    if category not in ("Mn", "Cf") and not category.startswith("P"):
        return char in NEW_LETTERS
    dropped, alone = category in ("Mn", "Cf"), category.startswith("P")
    n_pieces = len(reference.encode(f"中{char}中").ids), len(reference.encode(f"x{char}x").ids)
    return (dropped and n_pieces[0] == 3) or (alone and n_pieces[1] == 1)


@cache
def replacement(reference: Tokenizer, char: str) -> str:
    """What the library must read in place of a character for the first three kinds of difference to be gone."""
    if char in STAND_INS:
        return STAND_INS[char]
    folded = fold_width(char)
    if folded != char and char != "\u3000":
        return folded
    if is_newer(reference, char):
        category = unicodedata.category(char)
        return {"M": "\u0301", "C": "\u200b", "P": "\u2020"}[category[0]]
    return char


def differ_in_marks_alone(text: str, mine: list[tuple[int, int, int]], other: list[tuple[int, int, int]]) -> bool:
    """Whether the pieces are equal, and their spans but for marks, which are ours where they follow a letter.

    The library leaves them out, or counts them to the next piece where Unicode's normal form puts them behind it.
    """
    is_mark = [unicodedata.category(char) == "Mn" for char in text] + [False]
    return [number for number, _, _ in mine] == [number for number, _, _ in other] and all(
        all(all(is_mark[min(a, b) : max(a, b)]) for a, b in pairs) and not is_mark[start] and not is_mark[end]
        for (_, start, end), (_, other_start, other_end) in zip(mine, other, strict=True)
        for pairs in [((start, other_start), (end, other_end))]
    )


def test_texts_differ_in_four_named_ways_only(reference):
    found = {"same": 0, "named": 0, "marks": 0}
    for text in texts(6000, seed=17):
        mine = ours(text)
        if mine == theirs(reference, text):
            found["same"] += 1
            continue
        known = "".join(replacement(reference, char) for char in text)
        assert len(known) == len(text)
        assert differ_in_marks_alone(known, mine, theirs(reference, known)), ascii(text)
        found["named" if known != text else "marks"] += 1
    assert min(found.values()) > 200, found  # each was put to the test


def test_every_code_point_alone_is_of_a_named_kind(reference):
    codes = [code for code in range(0x250) if chr(code) != "\u0301"]
    alike = [range(first, last + 1) for first, last in ALIKE]
    codes += [
        code
        for code in range(0x250, 0x32400, 7)
        if not (0xD800 <= code < 0xE000 or any(code in block for block in alike))
    ]
    codes += [code for block in alike for code in (*block[:3], *block[3:-3:70], *block[-3:])]
    for code in codes:
        char = chr(code)
        if unicodedata.category(char) == "Cn":
            continue  # newer than this Python: what it is, nobody here knows
        text = f"x{char}中{char}"
        known = text if code >= 0x2CEB0 else "".join(replacement(reference, c) for c in text)
        if unicodedata.name(char, "").startswith("CJK UNIFIED IDEOGRAPH-"):
            known = text if len(theirs(reference, text)) == 4 else text.replace(char, "\u4e01")
        assert differ_in_marks_alone(known, ours(text), theirs(reference, known)), hex(code)


@pytest.mark.parametrize(
    ("text", "expected", "library"),
    [
        ("Ａb", [(VOCABULARY.index("ab"), 0, 2)], [(1, 0, 2)]),  # full width
        ("e\u0301", [(VOCABULARY.index("e"), 0, 2)], [(VOCABULARY.index("e"), 0, 1)]),  # marks
        ("e\u08d4", [(VOCABULARY.index("e"), 0, 2)], [(1, 0, 2)]),  # a mark of Unicode 9
        ("a\u2e43b", [(VOCABULARY.index("a"), 0, 1), (1, 1, 2), (VOCABULARY.index("b"), 2, 3)], [(1, 0, 3)]),
        ("a\U0002ceb0", [(VOCABULARY.index("a"), 0, 1), (1, 1, 2)], [(1, 0, 2)]),  # extension F
    ],
)
def test_each_kind(reference, text, expected, library):
    assert ours(text) == expected and theirs(reference, text) == library
