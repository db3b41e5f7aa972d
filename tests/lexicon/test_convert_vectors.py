"""Converting vectors to a mapped folder, alone and aligned with a lexicon."""

from unittest.mock import Mock

import numpy as np
import pytest

from cige.errors import LexiconError
from cige.lexicon.convert_vectors import RowFile, convert_vectors
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.vectors import VectorTable

TEXT = "5 3\n的 0 0 1\n南京 1 2 3\n长江 4 5 6\n南京 7 8 9\n大桥 1 1\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.txt"
    path.write_text(TEXT)
    return path


def test_rows_follow_the_file_and_bad_ones_are_reported(source, tmp_path):
    report = convert_vectors(source, tmp_path / "out", dtype="float32")
    table = VectorTable.load(tmp_path / "out")
    assert list(table.words) == ["的", "南京", "长江"]
    assert table.vectors.dtype == np.float32
    assert table.vectors.tolist() == [[0, 0, 1], [1, 2, 3], [4, 5, 6]]
    assert (report.n_taken, report.n_refused, report.n_duplicates) == (3, 2, 1)
    assert [refusal.line for refusal in report.refused] == [5, 6]


def test_with_a_lexicon_row_i_is_word_i(source, tmp_path):
    lexicon = Lexicon.from_words(["长江", "长江大桥", "南京"])
    report = convert_vectors(source, tmp_path / "out", lexicon=lexicon)
    table = VectorTable.load(tmp_path / "out")
    assert list(table.words) == list(lexicon)
    assert table.vectors.dtype == np.float16
    assert table.vectors.tolist() == [[4, 5, 6], [0, 0, 0], [1, 2, 3]]
    assert table.present.tolist() == [True, False, True]
    assert table.rows(["长江", "长江大桥", "南京", "的"]).tolist() == [0, -1, 2, -1]
    assert (report.n_taken, report.n_skipped, report.n_missing, report.n_refused) == (2, 1, 1, 2)
    assert "1 lexicon word without a vector" in str(report)


def test_a_lexicon_whose_last_words_have_no_vector(source, tmp_path):
    convert_vectors(source, tmp_path / "out", lexicon=Lexicon.from_words(["南京", "没有", "也没有"]))
    assert VectorTable.load(tmp_path / "out").vectors.tolist() == [[1, 2, 3], [0, 0, 0], [0, 0, 0]]


def test_a_table_in_memory_or_a_folder_can_be_converted_again(source, tmp_path):
    VectorTable.load(source).save(tmp_path / "v.npz")
    convert_vectors(tmp_path / "v.npz", tmp_path / "all")
    lexicon = Lexicon.from_words(["长江", "南京"])
    convert_vectors(tmp_path / "all", tmp_path / "aligned", lexicon=lexicon)
    assert VectorTable.load(tmp_path / "aligned").vectors.tolist() == [[4, 5, 6], [1, 2, 3]]


def test_words_without_a_vector_are_left_out_when_an_aligned_folder_is_converted(source, tmp_path):
    convert_vectors(source, tmp_path / "gaps", lexicon=Lexicon.from_words(["长江", "没有", "南京"]))
    report = convert_vectors(tmp_path / "gaps", tmp_path / "all")
    table = VectorTable.load(tmp_path / "all")
    assert list(table.words) == ["长江", "南京"] and table.vectors.tolist() == [[4, 5, 6], [1, 2, 3]]
    assert report.n_taken == 2 and report.n_refused == 0


def test_rows_that_follow_each_other_are_written_without_seeking(tmp_path, monkeypatch):
    with RowFile(tmp_path / "m.npy", width=1, dtype="float32") as matrix:
        file = Mock(wraps=matrix._file)
        monkeypatch.setattr(matrix, "_file", file)
        for row in (0, 1, 2):
            matrix.write(row, np.array([row], dtype=np.float32))
        assert not file.seek.called
        matrix.write(4, np.array([4], dtype=np.float32))
        assert file.seek.call_count == 1
        monkeypatch.undo()
    assert np.load(tmp_path / "m.npy").tolist() == [[0], [1], [2], [0], [4]]


def test_numbers_beyond_float16_are_refused_not_made_infinite(tmp_path):
    (tmp_path / "v.txt").write_text("2 3\n南京 1 2 3\n长江 1 70000 3\n")
    report = convert_vectors(tmp_path / "v.txt", tmp_path / "half")
    assert report.refused == ((3, "长江", "number too large for float16"),)
    assert convert_vectors(tmp_path / "v.txt", tmp_path / "single", dtype="float32").n_taken == 2


def test_a_failure_leaves_the_old_folder(source, tmp_path):
    convert_vectors(source, tmp_path / "out")
    (tmp_path / "short.txt").write_text("9 3\n南京 1 2 3\n")
    with pytest.raises(LexiconError, match="states 9 vectors"):
        convert_vectors(tmp_path / "short.txt", tmp_path / "out")
    assert len(VectorTable.load(tmp_path / "out")) == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "short.txt", "source.txt"]


def test_nothing_usable_and_unknown_dtype(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"1 2\n\xc4\xcf 1 2\n")
    with pytest.raises(LexiconError, match="no usable vector"):
        convert_vectors(tmp_path / "v.txt", tmp_path / "out")
    with pytest.raises(LexiconError, match="expected one of float16, float32"):
        convert_vectors(tmp_path / "v.txt", tmp_path / "out", dtype="int8")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["vectors.npy", "words.txt", "offsets.npy", "hashes.npy", "rows.npy", "present.npy"])
@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_damaged_folder_is_a_clear_error(source, tmp_path, name, damage):
    convert_vectors(source, tmp_path / "out", lexicon=Lexicon.from_words(["南京", "长江"]))
    file = tmp_path / "out" / name
    data = file.read_bytes()
    file.unlink() if damage == "missing" else file.write_bytes(data[:-1])
    with pytest.raises(LexiconError, match=name):
        VectorTable.load(tmp_path / "out")


def test_rows_out_of_order(tmp_path):
    with RowFile(tmp_path / "m.npy", width=2, dtype="float32") as matrix:
        for row in (2, 0, 3):
            matrix.write(row, np.array([row, row + 0.5], dtype=np.float32))
        matrix.extend(5)
    assert np.load(tmp_path / "m.npy").tolist() == [[0, 0.5], [0, 0], [2, 2.5], [3, 3.5], [0, 0]]
