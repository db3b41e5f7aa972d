"""Word pieces: the same as BERT's, with offsets."""

import pytest

from cige.lattice_bert.encoder.word_pieces import MAX_RUN_CHARS, WordPieces

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


def cutter_noting_cuts() -> tuple[WordPieces, list[str]]:
    cutter = WordPieces(PIECES, unk_id=1)
    cut: list[str] = []
    usual = cutter._longest_first
    cutter._longest_first = lambda run: cut.append(run) or usual(run)
    return cutter, cut


def test_a_run_is_cut_once_and_then_remembered():
    cutter, cut = cutter_noting_cuts()
    for _ in range(3):
        assert (
            cutter.split("unable iPhone12 unable").ids.tolist() == CUTTER.split("unable iPhone12 unable").ids.tolist()
        )
    assert cut == ["unable", "iphone12"]


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr("cige.lattice_bert.encoder.word_pieces._MAX_CACHED_RUNS", 2)
    cutter, cut = cutter_noting_cuts()
    for text in ("a b", "a b", "ab", "ab", "a"):
        assert cutter.split(text).ids.tolist() == CUTTER.split(text).ids.tolist()
        assert len(cutter._cuts) <= 2
    assert cut == ["a", "b", "ab", "a"]  # the third run made room by forgetting the others


def test_a_run_beyond_the_limit_is_neither_cut_nor_remembered():
    cutter, cut = cutter_noting_cuts()
    cutter.split("ab" * MAX_RUN_CHARS)
    assert not cut and not cutter._cuts
    cutter.split("a" * MAX_RUN_CHARS)
    assert cut == ["a" * MAX_RUN_CHARS] and list(cutter._cuts) == cut


def test_text_without_runs_looks_for_none(monkeypatch):
    cutter, _ = cutter_noting_cuts()
    monkeypatch.setattr(cutter, "_cut_runs", None)  # not asked
    assert cutter.split("研究，。 生").ids.tolist() == CUTTER.split("研究，。 生").ids.tolist()


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

    from cige.lattice_bert.encoder.joint_vocabulary import read_pieces

    vocabulary = read_pieces(shared_data / "lexicon" / "google_zh_vocab.txt")
    expected, cutter = transformers_pieces(vocabulary), WordPieces(vocabulary, unk_id=vocabulary.index("[UNK]"))
    with lzma.open(shared_data / "corpus" / "zh_corpus.txt.xz", "rt", encoding="utf-8") as file:
        lines = [next(file) for _ in range(1000)]
    for line in lines:
        assert cutter.split(line).ids.tolist() == expected(line), line
