"""VectorTable: the same vectors from every kind of file."""

import gzip
import lzma
import struct

import numpy as np
import pytest

from cige.errors import LexiconError
from cige.lexicon import vectors as module
from cige.lexicon.convert_vectors import build_with_vectors, convert_vectors
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.vectors import VectorTable

WORDS = ["的", "南京", " ", "a\xa0b", "。</s>", "\U00020bb7野家"]
VECTORS = np.arange(24, dtype=np.float32).reshape(6, 4) / 8 - 1


def text_of(words, vectors, *, header=True):
    lines = [f"{len(words)} {vectors.shape[1]}"] if header else []
    lines += [" ".join([word, *map(str, vector.tolist())]) for word, vector in zip(words, vectors, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def binary_of(words, vectors, *, newline=b"\n"):
    rows = [
        word.encode() + b" " + struct.pack(f"<{len(vector)}f", *vector) + newline
        for word, vector in zip(words, vectors, strict=True)
    ]
    return f"{len(words)} {vectors.shape[1]}\n".encode() + b"".join(rows)


def write_npz(path, words=WORDS, vectors=VECTORS):
    np.savez_compressed(path, words=np.array("\n".join(words)), vectors=vectors.astype(np.float16), counts=[1] * 6)


def write_folder(path):
    (path.parent / "source.txt").write_bytes(text_of(WORDS, VECTORS))
    convert_vectors(path.parent / "source.txt", path)


KINDS = {
    "v.txt": lambda path: path.write_bytes(text_of(WORDS, VECTORS)),
    "v.vec": lambda path: path.write_bytes(text_of(WORDS, VECTORS, header=False)),
    "v.txt.gz": lambda path: path.write_bytes(gzip.compress(text_of(WORDS, VECTORS))),
    "v.txt.xz": lambda path: path.write_bytes(lzma.compress(text_of(WORDS, VECTORS))),
    "v.bin": lambda path: path.write_bytes(binary_of(WORDS, VECTORS)),
    "v.bin.gz": lambda path: path.write_bytes(gzip.compress(binary_of(WORDS, VECTORS, newline=b""))),
    "binary-by-content": lambda path: path.write_bytes(binary_of(WORDS, VECTORS)),
    "v.npz": write_npz,
    "folder": write_folder,
    "saved": lambda path: VectorTable(WORDS, VECTORS).save(path),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_file_gives_the_same_table(tmp_path, name):
    KINDS[name](tmp_path / name)
    table = VectorTable.load(tmp_path / name)
    assert list(table.words) == WORDS
    assert np.array_equal(table.vectors.astype(np.float32), VECTORS)
    assert (len(table), table.width) == (6, 4)
    assert [table.row(word) for word in WORDS] == list(range(6))
    assert table.row("没有") == -1
    rows = table.rows(["南京", "没有", "的", "南京", ""])
    assert rows.dtype == np.int64 and rows.tolist() == [1, -1, 0, 1, -1]
    assert table.rows([]).tolist() == []
    assert "南京" in table and "没有" not in table


def test_a_folder_is_mapped(tmp_path):
    write_folder(tmp_path / "folder")
    vectors = VectorTable.load(tmp_path / "folder").vectors
    assert isinstance(vectors.base, np.memmap) and not vectors.flags.writeable


def test_a_lexicon_folder_with_vectors_and_a_folder_with_gaps(tmp_path):
    (tmp_path / "v.txt").write_bytes(text_of(["南京", "长江"], VECTORS[:2]))
    build_with_vectors(tmp_path / "v.txt", tmp_path / "lexicon")
    convert_vectors(tmp_path / "v.txt", tmp_path / "gaps", lexicon=Lexicon.from_words(["长江", "没有", "南京"]))
    whole, gaps = (VectorTable.load(tmp_path / name) for name in ("lexicon", "gaps"))
    assert list(whole.words) == ["南京", "长江"] and whole.present is None
    assert whole.rows(["长江", "没有", "南京"]).tolist() == [1, -1, 0]
    assert np.array_equal(whole.vectors.astype(np.float32), VECTORS[:2])
    assert gaps.present.tolist() == [True, False, True]
    assert gaps.rows(["长江", "没有", "南京"]).tolist() == [0, -1, 2]


def test_words_are_looked_up_where_the_folder_says_and_else_in_one_dictionary(tmp_path, monkeypatch):
    made = []
    usual = module._dict_find
    monkeypatch.setattr(module, "_dict_find", lambda words: made.append(words) or usual(words))
    write_folder(tmp_path / "folder")
    made.clear()
    table = VectorTable.load(tmp_path / "folder")
    assert table.row("南京") == 1 and not made
    table = VectorTable(WORDS, VECTORS)
    assert not made  # made when it is first asked for
    assert table.row("南京") == 1 and table.row("没有") == -1 and len(made) == 1


@pytest.mark.parametrize(("largest", "dtype"), [(65504.0, np.float16), (1e6, np.float32)])
def test_vectors_are_saved_in_half_the_room_where_it_holds_them(tmp_path, largest, dtype):
    VectorTable(["a"], np.array([[largest, 1.0]], dtype=np.float32)).save(tmp_path / "v.npz")
    table = VectorTable.load(tmp_path / "v.npz")
    assert table.vectors.dtype == dtype and table.vectors.tolist() == [[largest, 1.0]]
    assert table.counts.tolist() == [0]  # not known


@pytest.mark.parametrize("words", [["a", "b"], ["a"], []])
@pytest.mark.parametrize("is_list", [False, True], ids=["lines", "array"])
def test_words_of_an_npz_may_be_lines_or_an_array(tmp_path, words, is_list):
    vectors = np.ones((len(words), 2), np.float32)
    np.savez(tmp_path / "v.npz", words=np.array(words if is_list else "\n".join(words)), vectors=vectors)
    table = VectorTable.load(tmp_path / "v.npz")
    assert list(table.words) == words and table.rows(words).tolist() == list(range(len(words)))


def test_bad_rows_are_reported_and_the_rest_is_taken(tmp_path):
    lines = ["7 2", "南京 1 2", "长江 1", "大桥 1 x", "市长 nan 1", "南京 3 4", "ＡＢ 5 6", ""]
    (tmp_path / "v.txt").write_text("\n".join(lines) + "\n")
    table = VectorTable.load(tmp_path / "v.txt")
    assert table.words == ["南京", "AB"], "words are normalised as texts are"
    assert table.vectors.tolist() == [[1, 2], [5, 6]]
    assert {refusal.line: refusal.reason for refusal in table.report.refused} == {
        3: "wrong number of columns for a vector",
        4: "not finite numbers",
        5: "not finite numbers",
        6: "duplicate",
        8: "wrong number of columns for a vector",
    }


def test_a_word_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"2 2\n\xc4\xcf 1 2\nab 3 4\n")
    table = VectorTable.load(tmp_path / "v.txt")
    assert table.words == ["ab"] and table.report.refused[0][::2] == (2, "not UTF-8")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("short.txt", text_of(WORDS, VECTORS)[:-40], "states 6 vectors, but it has"),
        ("short.bin", binary_of(WORDS, VECTORS)[:-9], "states 6 vectors, but it has 5"),
        ("short.gz", gzip.compress(text_of(WORDS, VECTORS), mtime=0)[:-10], "truncated"),
        ("short.npz", b"PK\x03\x04 and then nothing", "not a readable .npz"),
        ("prose.txt", "这不是向量。\n真的不是。\n".encode(), "not word2vec text or binary"),
        ("empty.txt", b"", "not word2vec text or binary"),
        ("mac.txt", "南京 1 2 3\r长江 2 3 4\r".encode(), "not word2vec text or binary"),
        ("useless.txt", b"1 2\n\xc4\xcf 1 2\n", "no usable vector"),
    ],
)
def test_damaged_and_foreign_files(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(LexiconError, match=message) as caught:
        VectorTable.load(tmp_path / name)
    assert name in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(LexiconError, match="cannot be read"):
        VectorTable.load(tmp_path / "nowhere.npz")


def test_an_npz_with_missing_fields_or_another_number_of_words(tmp_path):
    np.savez(tmp_path / "a.npz", vectors=VECTORS)
    with pytest.raises(LexiconError, match="there is no field"):
        VectorTable.load(tmp_path / "a.npz")
    write_npz(tmp_path / "b.npz", words=WORDS[:5])
    with pytest.raises(LexiconError, match=r"b\.npz: 5 words for vectors of shape \(6, 4\)"):
        VectorTable.load(tmp_path / "b.npz")


def test_the_first_row_of_a_repeated_word_counts():
    assert VectorTable(["a", "b", "a"], VECTORS[:3]).row("a") == 0


def test_saving_keeps_counts_and_numbers_that_float16_cannot_hold(tmp_path):
    VectorTable(["a"], np.array([[1e6]], dtype=np.float32), counts=np.array([7])).save(tmp_path / "v.npz")
    table = VectorTable.load(tmp_path / "v.npz")
    assert table.vectors.tolist() == [[1e6]] and table.counts.tolist() == [7]


def test_the_shared_vectors_load(shared_data):
    table = VectorTable.load(shared_data / "vectors" / "char.npz")
    assert table.vectors.shape == (len(table), 50) == (7395, 50)
    assert table.words[table.row("国")] == "国"
