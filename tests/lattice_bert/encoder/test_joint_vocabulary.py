"""Pieces and words under one numbering: building, refusing, saving, loading."""

import lzma
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.errors import LexiconError
from cige.lattice_bert.encoder.joint_vocabulary import IS_PIECE, ONE_PIECE, JointVocabulary, read_pieces
from cige.lexicon.word_counts import WordCounts, count_words
from cige.lexicon.word_rules import DUPLICATE, SINGLE, WHITESPACE

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*SPECIAL, *"研究生活", "2020", "ab", "##c", "。。"]


def reasons(vocabulary: JointVocabulary) -> list[tuple[str, str]]:
    return [(refusal.text, refusal.reason) for refusal in vocabulary.report.refused]


def test_numbering():
    made = JointVocabulary.build(PIECES, ["研究", "生活"])
    assert (len(made), made.n_pieces, made.n_words) == (15, 13, 2)
    assert [made.token(id) for id in range(15)] == [*PIECES, "研究", "生活"]
    assert all(made.id(made.token(id)) == id for id in range(15))
    assert (made.pad_id, made.unk_id, made.cls_id, made.sep_id, made.mask_id) == (0, 1, 2, 3, 4)
    assert (made.pieces, made.words) == (PIECES, ["研究", "生活"])
    assert "研究" in made and "究研" not in made
    assert made.report.n_taken == 2 and made.report.n_refused == 0


def test_special_pieces_may_stand_anywhere():
    made = JointVocabulary.build(["研", "[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]"], [])
    assert (made.pad_id, made.unk_id, made.cls_id, made.sep_id, made.mask_id) == (5, 4, 3, 2, 1)


def test_words_that_cannot_be_are_refused_and_told():
    given = ["研究", "研", "研究", "ab", "ABc", "研 究", "αβγ", "。。", "T恤", "t恤", "é", "2020年"]
    made = JointVocabulary.build(PIECES, given)
    assert made.words == ["研究", "abc", "t恤", "2020年"]  # abc has the pieces ab ##c
    assert reasons(made) == [
        ("研", SINGLE),
        ("研究", DUPLICATE),
        ("ab", IS_PIECE),
        ("研 究", WHITESPACE),
        ("αβγ", ONE_PIECE),
        ("。。", IS_PIECE),
        ("t恤", DUPLICATE),
        ("é", SINGLE),
    ]
    assert made.report.refused[0].line == 2


def test_the_first_n_words():
    made = JointVocabulary.build(PIECES, ["研", "研究", "ab", "生活", "究生"], n_words=2)
    assert made.words == ["研究", "生活"]
    assert (made.report.n_taken, made.report.n_refused, made.report.n_skipped) == (2, 2, 1)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([*PIECES, "究"], "line 14: '究' already occurs on line 7"),
        (PIECES[:3] + PIECES[5:], r"\[SEP\], \[MASK\] missing among 11 pieces"),
        ([*PIECES, ""], "line 14: ''; expected one word piece per line"),
        ([*PIECES, "a\nb"], "line 14"),
        ([], "missing among 0 pieces"),
    ],
)
def test_pieces_that_are_no_bert_vocabulary(pieces, message):
    with pytest.raises(LexiconError, match=message):
        JointVocabulary.build(pieces, ["研究"])


def test_one_string_is_not_a_list_of_words():
    with pytest.raises(LexiconError, match="not a string"):
        JointVocabulary.build(PIECES, "研究")


def test_what_is_not_there():
    made = JointVocabulary.build(PIECES, ["研究"])
    with pytest.raises(LexiconError, match="'没有' is not one of this vocabulary's 14 tokens"):
        made.id("没有")
    for id in (-1, 14):
        with pytest.raises(LexiconError, match="ids 0 to 13"):
            made.token(id)


def test_from_counts():
    counts = WordCounts({"研究": 5, "生活": 5, "究生": 2, "研": 9, "活活": 1}, 1, 50, 0, ())
    assert JointVocabulary.from_counts(PIECES, counts).words == ["生活", "研究", "究生", "活活"]
    assert JointVocabulary.from_counts(PIECES, counts, 2).words == ["生活", "研究"]
    assert JointVocabulary.from_counts(PIECES, counts, min_count=2).words == ["生活", "研究", "究生"]
    assert JointVocabulary.from_counts(PIECES, counts, 3, include=["活活", "T恤"]).words == ["活活", "t恤", "生活"]
    assert JointVocabulary.from_counts(PIECES, counts, 0).words == []
    with pytest.raises(LexiconError, match="no Chinese word occurs 6 times among 50 characters"):
        JointVocabulary.from_counts(PIECES, counts, min_count=6)


def test_from_a_corpus(tmp_path):
    pytest.importorskip("jieba")
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES), encoding="utf-8")
    corpus = tmp_path / "corpus.txt.xz"
    corpus.write_bytes(lzma.compress("研究生活，研究生活。\n研究。\n".encode()))
    made = JointVocabulary.from_counts(read_pieces(tmp_path / "vocab.txt"), count_words(corpus), 1)
    assert made.words == ["研究"] and made.pieces == PIECES


# ---- files


def test_saved_and_loaded(tmp_path):
    made = JointVocabulary.build([*PIECES, "\u2028", "##\u2028"], ["研究", "2020年", "。研"])
    made.save(tmp_path / "vocabulary")
    loaded = JointVocabulary.load(tmp_path / "vocabulary")
    assert (loaded.pieces, loaded.words) == (made.pieces, made.words)
    assert loaded.fingerprint == made.fingerprint and len(made.fingerprint) == 64
    assert loaded.report is None
    made.save(tmp_path / "vocabulary")  # once more, over itself
    assert (tmp_path / "vocabulary" / "words.txt").read_text(encoding="utf-8") == "研究\n2020年\n。研\n"


def test_pickled():
    made = JointVocabulary.build(PIECES, ["研究"])
    assert pickle.loads(pickle.dumps(made)).fingerprint == made.fingerprint


@settings(max_examples=20)
@given(words=st.lists(st.text(st.characters(), max_size=4), max_size=30))
def test_any_words_survive_saving(tmp_path_factory, words):
    folder = tmp_path_factory.mktemp("any") / "vocabulary"
    made = JointVocabulary.build(PIECES, words)
    made.save(folder)
    loaded = JointVocabulary.load(folder)
    assert loaded.words == made.words and loaded.fingerprint == made.fingerprint


def test_fingerprint_tells_tokens_and_their_kind_apart():
    first = JointVocabulary.build(PIECES, ["研究"]).fingerprint
    assert first == JointVocabulary.build(PIECES, ["研究", "研"]).fingerprint
    assert first != JointVocabulary.build(PIECES, ["究研"]).fingerprint
    assert first != JointVocabulary.build([*PIECES, "研究"], []).fingerprint


def test_damage_is_told(tmp_path):
    folder = tmp_path / "vocabulary"
    with pytest.raises(LexiconError, match="no such folder"):
        JointVocabulary.load(folder)
    JointVocabulary.build(PIECES, ["研究", "生活"]).save(folder)
    (folder / "words.txt").write_text("研究\n生生\n", encoding="utf-8")
    with pytest.raises(LexiconError, match=r"words\.txt: contents differ"):
        JointVocabulary.load(folder)
    (folder / "words.txt").unlink()
    with pytest.raises(LexiconError, match=r"words\.txt: missing"):
        JointVocabulary.load(folder)


def test_nothing_else_is_replaced(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(LexiconError, match="will not be replaced"):
        JointVocabulary.build(PIECES, ["研究"]).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_reading_pieces(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\ufeff".encode() + "\r\n".join([*PIECES, "\u2028"]).encode())
    assert read_pieces(path) == [*PIECES, "\u2028"]
    path.write_text("\n".join([*PIECES, "研"]), encoding="utf-8")
    with pytest.raises(LexiconError, match=r"vocab.txt, line 14: '研' already occurs on line 6"):
        read_pieces(path)
    path.write_bytes(b"[PAD]\n\xff\n")
    with pytest.raises(LexiconError, match=r"vocab\.txt, line 2: not UTF-8"):
        read_pieces(path)
    with pytest.raises(LexiconError, match="nowhere: cannot be read"):
        read_pieces(tmp_path / "nowhere")


def test_the_vocabulary_of_google(shared_data):
    pieces = read_pieces(shared_data / "lexicon" / "google_zh_vocab.txt")
    assert len(pieces) == 21_128
    made = JointVocabulary.build(pieces, ["研究", "很充实"])
    assert (made.pad_id, made.unk_id, made.cls_id, made.sep_id, made.mask_id) == (0, 100, 101, 102, 103)
    assert (made.id("研究"), made.id("很充实"), made.id("研")) == (21_128, 21_129, pieces.index("研"))
