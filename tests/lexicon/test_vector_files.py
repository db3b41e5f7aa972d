"""Reading word2vec files in blocks: where blocks end, what stands at the beginning, and the fast way for sound rows."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cige.errors import LexiconError
from cige.lexicon import vector_files as module
from cige.lexicon.report import ReportBuilder
from cige.lexicon.vector_files import open_vectors

ROWS = [("南京", [1.0, 2.0, 3.0]), ("的", [0.5, 0.25, 0.0]), ("长江大桥", [-1.0, 4.0, 8.0])]
BOM = b"\xef\xbb\xbf"
BLOCKS = [3, 7, 8, 30, 1 << 20]


def text(rows=ROWS, *, header: bool = False) -> bytes:
    lines = [f"{len(rows)} 3"] if header else []
    lines += [" ".join([word, *map(str, numbers)]) for word, numbers in rows]
    return ("\n".join(lines) + "\n").encode()


def binary(rows=ROWS, *, end: bytes = b"\n") -> bytes:
    packed = [word.encode() + b" " + struct.pack("<3f", *numbers) + end for word, numbers in rows]
    return f"{len(rows)} 3\n".encode() + b"".join(packed)


def read(path, data: bytes) -> list[tuple[int, str, list[float]]]:
    path.write_bytes(data)
    source = open_vectors(path)
    report = ReportBuilder(source=str(path), format=source.format)
    return [
        (line, word, vector.tolist())
        for block in source.blocks(report)
        for line, word, vector in zip(block.lines, block.words, block.vectors, strict=True)
    ]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("has_header", [False, True])
@pytest.mark.parametrize("has_bom", [False, True])
@pytest.mark.parametrize("has_last_newline", [False, True])
def test_text_wherever_its_blocks_end(tmp_path, monkeypatch, block, has_header, has_bom, has_last_newline):
    monkeypatch.setattr(module, "_BLOCK", block)
    data = BOM * has_bom + text(header=has_header)
    expected = [(line, *row) for line, row in enumerate(ROWS, 1 + has_header)]
    assert read(tmp_path / "v.txt", data if has_last_newline else data.removesuffix(b"\n")) == expected


def test_a_mark_that_does_not_begin_the_file_belongs_to_its_word(tmp_path, monkeypatch):
    data = text([ROWS[0], ("\ufeff的", ROWS[1][1])])
    monkeypatch.setattr(module, "_BLOCK", data.index(BOM))  # it begins the second block
    assert [word for _, word, _ in read(tmp_path / "v.txt", data)] == ["南京", "\ufeff的"]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("end", [b"", b"\n"], ids=["no line ends", "line ends"])
def test_binary_wherever_its_blocks_end(tmp_path, monkeypatch, block, end):
    monkeypatch.setattr(module, "_BLOCK", block)
    assert read(tmp_path / "v.bin", binary(end=end)) == [(row, *given) for row, given in enumerate(ROWS, 1)]


@pytest.mark.parametrize(
    ("name", "data", "form"),
    [
        ("v.txt", text(), "word2vec"),
        ("v.txt", text(header=True), "word2vec"),
        ("v.bin", text(), "word2vec"),  # no header, so it is not binary, whatever its name
        ("v.bin", binary(), "binary"),
        ("v.vec", binary(), "binary"),  # by what it holds
        ("v.bin", binary([(word, [1.4, 1.4, 1.4]) for word, _ in ROWS]), "binary"),  # by name: no byte below a tab
    ],
)
def test_text_and_binary_are_told_apart(tmp_path, name, data, form):
    (tmp_path / name).write_bytes(data)
    source = open_vectors(tmp_path / name)
    assert (source.format, source.width) == (form, 3)
    assert source.n_promised == (3 if data.startswith(b"3 3\n") else None)


@pytest.mark.parametrize("data", [b"2 0\na b ", b"0 0\n"])
def test_vectors_without_numbers_are_refused(tmp_path, data):
    (tmp_path / "v.bin").write_bytes(data)
    with pytest.raises(LexiconError, match=r"v\.bin: its header states vectors of 0 numbers, expected 1 or more"):
        open_vectors(tmp_path / "v.bin")


def raw(words: list[bytes], vectors: list[list[float]]) -> module._RawBlock:
    return module._RawBlock(5, words, {}, np.array(vectors, np.float32))


def test_a_block_without_a_bad_row_is_not_copied():
    report = ReportBuilder(source="v.txt", format="word2vec")
    given = raw(["南京".encode(), b"a"], [[1, 2], [3, 4]])
    found = module._sound_rows(given, report)
    assert found.vectors is given.vectors and (found.lines, found.words) == ([5, 6], ["南京", "a"])
    given = raw(["南京".encode(), b"a", b"b"], [[1, 2], [np.inf, 4], [5, 6]])
    found = module._sound_rows(given, report)
    assert (found.lines, found.words, found.vectors.tolist()) == ([5, 7], ["南京", "b"], [[1, 2], [5, 6]])


def test_words_are_decoded_together_unless_one_is_odd(monkeypatch):
    alone = []
    usual = module._decode
    monkeypatch.setattr(module, "_decode", lambda word: alone.append(word) or usual(word))
    assert module._decoded(["南京".encode(), "Ａ".encode()]) == ["南京", "A"] and not alone
    odd = ["南京".encode(), b"\xff", b"a\nb"]
    assert module._decoded(odd) == ["南京", None, "a\nb"] and alone == odd
    alone.clear()
    odd = ["南京".encode(), b"a\nb"]  # of a binary file
    assert module._decoded(odd) == ["南京", "a\nb"] and alone == odd
