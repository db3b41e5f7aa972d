"""A vector file in one pass: words, vectors in their order, the report, and nothing half-written."""

import gzip
import lzma
import signal
import subprocess
import sys

import numpy as np
import pytest
from disks import full_disk

from cige.cli import main
from cige.errors import LexiconError
from cige.lexicon import base_words, vector_files
from cige.lexicon import convert_vectors as converting
from cige.lexicon.convert_vectors import RowFile, build_with_vectors, convert_vectors
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.storage import check_lexicon
from cige.lexicon.vectors import VectorTable

LINES = [
    "13 3",
    "南京 1 2 3",
    "的 4 5 6",
    "ＡＢ 0.5 -1e-3 7",
    "南京 7 8 9",
    "长江 1 2",
    "长江 1 2 3 4",
    "大桥 1 nan 3",
    "大桥 1 2 x",
    "南京 市 1 2 3",
    "长江大桥 70000 2 3",
    "AB 1 2 3",
    "\ufffd京 1 2 3",
    "长江大桥 .25 2. +3",
]
REFUSED = {
    3: "single character",
    5: "duplicate",
    6: "wrong number of columns for a vector",
    7: "whitespace inside",  # one number too many reads as a word with a blank in it
    8: "not finite numbers",
    9: "not finite numbers",
    10: "whitespace inside",
    11: "number too large for float16",
    12: "duplicate",
    13: "character that cannot be encoded (U+FFFD or a lone surrogate)",
}
VECTORS = [[1, 2, 3], [0.5, -1e-3, 7], [0.25, 2, 3]]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("block", [7, 1 << 22])
def test_one_folder_is_a_lexicon_and_its_vectors(source, tmp_path, monkeypatch, pack, block):
    monkeypatch.setattr(vector_files, "_BLOCK", block)
    source.write_bytes(pack(source.read_bytes()))
    calls = []
    report = build_with_vectors(source, tmp_path / "lex", on_progress=lambda *numbers: calls.append(numbers))
    lexicon, table = Lexicon.load(tmp_path / "lex"), VectorTable.load(tmp_path / "lex")
    assert list(lexicon) == list(table.words) == ["南京", "AB", "长江大桥"]
    assert table.vectors.dtype == np.float16 and isinstance(table.vectors.base, np.memmap)
    assert table.vectors.tolist() == np.array(VECTORS, dtype=np.float16).tolist()
    assert table.rows(["长江大桥", "长江", "AB", "的"]).tolist() == [2, -1, 1, -1]
    assert lexicon.match("在南京AB").tolist() == [[1, 3, 0], [3, 5, 1]]
    assert {refusal.line: refusal.reason for refusal in report.refused} == REFUSED
    assert [refusal.line for refusal in report.refused] == sorted(REFUSED)
    assert (report.n_taken, report.n_refused, report.n_duplicates) == (3, 10, 2)
    assert calls == sorted(calls) and calls[-1] == (source.stat().st_size,) * 2
    check_lexicon(tmp_path / "lex")


def test_a_block_that_is_taken_whole_is_not_copied(tmp_path, monkeypatch):
    blocks, written = [], []
    cast, write = RowFile.cast, RowFile.write
    monkeypatch.setattr(RowFile, "cast", lambda self, vectors: blocks.append(cast(self, vectors)) or blocks[-1])
    monkeypatch.setattr(RowFile, "write", lambda self, row, rows: written.append(rows) or write(self, row, rows))
    for number, lines in enumerate((["南京 1 2 3", "长江 4 5 6"], ["南京 1 2 3", "京 4 5 6", "长江 7 8 9"])):
        (tmp_path / "v.txt").write_text("\n".join(lines) + "\n")
        build_with_vectors(tmp_path / "v.txt", tmp_path / f"lexicon-{number}")
    assert (written[0] is blocks[0][0]) and written[1].tolist() == [[1, 2, 3], [7, 8, 9]]


def test_binary_files_too(tmp_path):
    vectors = np.arange(6, dtype="<f4").reshape(2, 3)
    rows = [word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(["南京", "长江"], vectors, strict=True)]
    (tmp_path / "v.bin").write_bytes(b"2 3\n" + b"".join(rows))
    build_with_vectors(tmp_path / "v.bin", tmp_path / "lex")
    assert VectorTable.load(tmp_path / "lex").vectors.tolist() == vectors.tolist()


def test_the_same_words_as_without_vectors_and_the_same_vectors_as_converting(source, tmp_path):
    build_with_vectors(source, tmp_path / "lex")
    lexicon = Lexicon.load(tmp_path / "lex")
    convert_vectors(source, tmp_path / "aligned", lexicon=lexicon)
    aligned, table = VectorTable.load(tmp_path / "aligned"), VectorTable.load(tmp_path / "lex")
    assert np.array_equal(aligned.vectors, table.vectors) and aligned.present.all()
    convert_vectors(tmp_path / "lex", tmp_path / "copy")
    assert np.array_equal(VectorTable.load(tmp_path / "copy").vectors, table.vectors)


def test_saving_a_users_words_into_the_folder_keeps_the_vectors(source, tmp_path):
    folder = tmp_path / "lex"
    build_with_vectors(source, folder)
    lexicon = Lexicon.load(folder)
    lexicon.add("江大桥")
    lexicon.save(folder)
    assert Lexicon.load(folder).user_words == ("江大桥",)
    assert VectorTable.load(folder).vectors.tolist() == np.array(VECTORS, dtype=np.float16).tolist()
    check_lexicon(folder)
    with pytest.raises(LexiconError, match="holds the vectors of other words"):
        Lexicon.from_words(["别的"]).save(folder)
    assert len(VectorTable.load(folder)) == 3, "nothing changed"
    lexicon.save(tmp_path / "other")
    with pytest.raises(LexiconError, match="other: a lexicon without vectors; build it with"):
        VectorTable.load(tmp_path / "other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9 3\n南京 1 2 3\n", "states 9 vectors, but it has 1"),
        ("2 3\n的 1 2 3\n了 1 2 3\n", "no usable word.*single character"),
        ("南京\n长江\n", "not word2vec"),
        ("", "not word2vec"),
    ],
)
def test_files_that_give_no_lexicon(tmp_path, text, message):
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(LexiconError, match=f"(?s){message}"):
        build_with_vectors(tmp_path / "v.txt", tmp_path / "lex")
    assert [file.name for file in tmp_path.iterdir()] == ["v.txt"], "nothing left aside"


@pytest.mark.parametrize("cut", [40, 200, -1])
def test_a_packed_file_cut_short(source, tmp_path, cut):
    text = source.read_bytes() + b"".join(b"w%d 1 2 3\n" % i for i in range(1000))
    source.write_bytes(gzip.compress(text, mtime=0)[:cut])
    with pytest.raises(LexiconError, match=r"vectors\.txt.*damaged or truncated"):
        build_with_vectors(source, tmp_path / "lex")
    assert not (tmp_path / "lex").exists()


@pytest.mark.parametrize("module", [converting, base_words])
def test_a_full_disk_leaves_the_old_folder(source, tmp_path, monkeypatch, module):
    build_with_vectors(source, tmp_path / "lex")

    monkeypatch.setattr(base_words, "STORED_FROM", 1)
    monkeypatch.setattr(module.np, "save" if module is base_words else "isfinite", full_disk)
    with pytest.raises(LexiconError, match="No space left on device"):
        build_with_vectors(source, tmp_path / "lex")
    monkeypatch.undo()
    assert len(Lexicon.load(tmp_path / "lex")) == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lex", "vectors.txt"]


KILLED = """
import os, signal, sys
from cige.lexicon import base_words, storage
from cige.lexicon.convert_vectors import build_with_vectors
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
when, source, folder = sys.argv[1:]
if when == "indexing":
    base_words.Matcher.build = die
if when == "sealing":
    storage.write_manifest = die
build_with_vectors(source, folder, on_progress=die if when == "reading" else None)
"""


@pytest.mark.parametrize("when", ["reading", "indexing", "sealing"])
def test_a_build_that_is_killed_leaves_nothing_that_loads(source, tmp_path, when):
    folder = tmp_path / "lex"
    for older in (False, True):
        if older:
            build_with_vectors(source, folder)
        done = subprocess.run([sys.executable, "-c", KILLED, when, source, folder], capture_output=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        for left in tmp_path.glob(".lex.*"):
            with pytest.raises(LexiconError, match=r"no manifest\.json"):
                Lexicon.load(left)
        assert folder.exists() == older
    assert len(Lexicon.load(folder)) == len(VectorTable.load(folder)) == 3


@pytest.mark.parametrize("name", ["vectors.npy", "words.txt", "offsets.npy"])
def test_a_damaged_folder_is_a_clear_error(source, tmp_path, name):
    build_with_vectors(source, tmp_path / "lex")
    file = tmp_path / "lex" / name
    data = file.read_bytes()
    for damaged in (data[:-1], data[:-1] + bytes([data[-1] ^ 1])):
        file.write_bytes(damaged)
        with pytest.raises(LexiconError, match=name):
            check_lexicon(tmp_path / "lex")
    file.write_bytes(data[:-1])
    for load in (Lexicon.load, VectorTable.load):
        with pytest.raises(LexiconError, match=name):
            load(tmp_path / "lex")


def run(capsys, *argv):
    code = main([str(argument) for argument in argv])
    return code, *capsys.readouterr()


def test_the_command_builds_and_checks(source, tmp_path, capsys):
    code, out, _ = run(capsys, "lexicon", "build", source, tmp_path / "lex", "--vectors")
    assert code == 0 and "3 taken, 10 refused" in out and "line 5: '南京': duplicate" in out
    assert f"wrote {tmp_path / 'lex'}: 3 words and their vectors, from" in out and "MB/s" in out
    assert (
        run(capsys, "lexicon", "check", tmp_path / "lex")[1] == f"{tmp_path / 'lex'}: all files are intact, 3 words\n"
    )
    (tmp_path / "lex" / "user.json").write_text("{}" + " " * 26)
    code, _, err = run(capsys, "lexicon", "check", tmp_path / "lex")
    assert code != 0 and "user.json: contents differ" in err
    code, _, err = run(capsys, "lexicon", "build", source, tmp_path / "lex", "--vectors", "--min-count", "5")
    assert code != 0 and "leave out --format and --min-count" in err


def test_words_are_found_whatever_invisible_characters_they_have_in_the_file(tmp_path):
    text = "长江 1 2 3\n大\u200b桥 4 5 6\n大桥 7 8 9\n星\u200d河 1 1 1\n"
    (tmp_path / "v.txt").write_text(text, encoding="utf-8")
    report = build_with_vectors(tmp_path / "v.txt", tmp_path / "out")
    assert (report.n_taken, report.n_duplicates) == (3, 1)
    lexicon = Lexicon.load(tmp_path / "out")
    assert list(lexicon.words) == ["长江", "大桥", "星河"] and all(word in lexicon for word in lexicon.words)
    assert lexicon.match("星\u200d河").tolist() == [[0, 3, 2]]
    assert VectorTable.load(tmp_path / "out").vectors.tolist() == [[1, 2, 3], [4, 5, 6], [1, 1, 1]]
