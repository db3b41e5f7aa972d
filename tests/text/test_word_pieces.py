"""Word pieces: the same as BERT's, with offsets."""

import pytest

from cige.text.word_pieces import MAX_RUN_CHARS, WordPieces

PIECES = [
    *["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "研", "究", "生", "很", "，", "。", "(", ")", "a", "b", "1", "2"],
    *[
        "2020",
        "un",
        "##aff",
        "##able",
        "caf",
        "##e",
        "##s",
        "iphone",
        "##1",
        "##2",
        "##12",
        "##b",
        "。。",
        "##研",
        "年",
    ],
]
CUTTER = WordPieces(PIECES, unk_id=1)


def pieces(text: str) -> list[tuple[str, str]]:
    """(piece, the part of the text it stands for) of every piece."""
    found = CUTTER.split(text)
    spans = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    return [(PIECES[id], text[start:end]) for id, (start, end) in zip(found.ids.tolist(), spans, strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("研究", [("研", "研"), ("究", "究")]),
        ("研丨究", [("研", "研"), ("[UNK]", "丨"), ("究", "究")]),
        ("2020年", [("2020", "2020"), ("年", "年")]),
        ("UNaffable", [("un", "UN"), ("##aff", "aff"), ("##able", "able")]),
        (
            "Cafés cafe\u0301s",
            [("caf", "Caf"), ("##e", "é"), ("##s", "s"), ("caf", "caf"), ("##e", "e\u0301"), ("##s", "s")],
        ),
        ("iPhone12b", [("iphone", "iPhone"), ("##12", "12"), ("##b", "b")]),
        ("iPhone x", [("iphone", "iPhone"), ("[UNK]", "x")]),
        ("unx研", [("[UNK]", "unx"), ("研", "研")]),  # one unknown part makes the run unknown
        ("(a)b，。。", [("(", "("), ("a", "a"), (")", ")"), ("b", "b"), ("，", "，"), ("。", "。"), ("。", "。")]),
        ("ａ１ 　2", [("a", "ａ"), ("##1", "１"), ("2", "2")]),
        ("😀研\ud800究", [("[UNK]", "😀"), ("研", "研"), ("究", "究")]),
        ("a\u200bb", [("a", "a"), ("##b", "b")]),
        ("\x00\ud800 \u200b", []),
        ("", []),
    ],
)
def test_pieces_and_offsets(text, expected):
    assert pieces(text) == expected


def test_a_run_beyond_the_limit_is_one_unknown_piece():
    assert pieces("a" + "b" * (MAX_RUN_CHARS - 1))[0] == ("a", "a")
    assert pieces("研" + "ab" * MAX_RUN_CHARS + "。") == [("研", "研"), ("[UNK]", "ab" * MAX_RUN_CHARS), ("。", "。")]


def test_words_may_begin_and_end_at_edges_only():
    found = CUTTER.split("研ab12 ，a")
    assert found.normal == "研ab12 ，a"
    assert found.is_edge.tolist() == [True, True, False, False, False, True, True, True, True]
    assert found.n_before.tolist() == [0, 1, 2, 3, 4, 4, 4, 5, 6]


def test_repeated_runs_are_cut_alike():
    assert pieces("unable " * 2) == pieces("unable") * 2


TEXTS = [
    "研究生活很充实。",
    "2020年，Unaffable的iPhone12b(a) Cafés!",
    "x" * 101 + " un\tab\nab\u3000研  究",
    "naïve Ünaffable ΑΒΓ Привет テスト 한국 ½ № ™ 😀👍🏽 a\u200bb\x00c e\u0301 ﬁ İ",
    "[MASK] [UNK] ##able",
]


@pytest.fixture(scope="module")
def transformers_pieces(tmp_path_factory):
    """vocab.txt -> text -> pieces as transformers' BertTokenizer makes them; special tokens in a text are text."""
    transformers = pytest.importorskip("transformers")

    def make(vocabulary):
        folder = tmp_path_factory.mktemp("bert")
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary), encoding="utf-8")
        tokenizer = transformers.BertTokenizer.from_pretrained(folder, do_lower_case=True)
        return lambda text: tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]

    return make


def test_equal_to_transformers_on_a_small_vocabulary(transformers_pieces):
    letters = sorted({char for text in TEXTS for char in text.lower() if char.isalnum() and char.isascii()})
    vocabulary = list(dict.fromkeys([*PIECES, *letters, *(f"##{char}" for char in letters), "½", "™", "ﬁ", "α", "##β"]))
    expected, cutter = transformers_pieces(vocabulary), WordPieces(vocabulary, unk_id=1)
    for text in TEXTS:
        assert cutter.split(text).ids.tolist() == expected(text), text


def test_equal_to_transformers_on_real_text(transformers_pieces, shared_data):
    import lzma

    from cige.lexicon.joint_vocabulary import read_pieces

    vocabulary = read_pieces(shared_data / "lexicon" / "google_zh_vocab.txt")
    expected, cutter = transformers_pieces(vocabulary), WordPieces(vocabulary, unk_id=vocabulary.index("[UNK]"))
    with lzma.open(shared_data / "corpus" / "zh_corpus.txt.xz", "rt", encoding="utf-8") as file:
        lines = [next(file) for _ in range(1000)]
    for line in lines:
        assert cutter.split(line).ids.tolist() == expected(line), line
