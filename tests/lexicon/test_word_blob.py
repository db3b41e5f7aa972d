"""Words as one blob."""

import numpy as np
import pytest

from cige.errors import LexiconError
from cige.lexicon import word_blob
from cige.lexicon.word_blob import WORDS_FILE, WordBlob, finish_blob

WORDS = ["南京", "a b", "\U00020bb7野家", "é"]


def test_words_come_back_by_number_by_slice_and_in_order():
    blob = WordBlob.from_words(WORDS)
    assert [blob[i] for i in range(4)] == list(blob) == WORDS
    assert blob[-1] == "é" and blob[1:3] == WORDS[1:3] and len(blob) == 4
    with pytest.raises(IndexError):
        blob[4]


@pytest.mark.parametrize("words", [WORDS, []])
def test_save_and_load(tmp_path, words):
    blob = WordBlob.from_words(words)
    blob.save(tmp_path)
    assert list(WordBlob.load(tmp_path)) == words
    assert WordBlob.load(tmp_path).sha256 == blob.sha256


def test_a_words_file_written_line_by_line_gets_its_offsets(tmp_path):
    (tmp_path / WORDS_FILE).write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    assert list(finish_blob(tmp_path)) == list(WordBlob.load(tmp_path)) == WORDS


def test_a_checksum_that_is_known_is_not_worked_out(tmp_path):
    WordBlob.from_words(WORDS).save(tmp_path)
    assert WordBlob.load(tmp_path, sha256="as the manifest says").sha256 == "as the manifest says"


class Large(np.ndarray):
    """An array that says it has four gigabytes."""

    def __len__(self) -> int:
        return 1 << 32


def test_offsets_take_four_bytes_where_four_hold_them():
    blob = np.frombuffer("南京\na\n".encode(), np.uint8)
    assert word_blob._offsets(blob).dtype == np.uint32
    offsets = word_blob._offsets(blob.view(Large))
    assert offsets.dtype == np.uint64 and offsets.tolist() == [0, 7, 9]


def test_words_that_were_saved_are_mapped(tmp_path):
    WordBlob.from_words(WORDS).save(tmp_path)
    loaded = WordBlob.load(tmp_path)
    assert isinstance(loaded.blob.base, np.memmap) and isinstance(loaded.offsets.base, np.memmap)


def test_offsets_of_other_words_are_an_error(tmp_path):
    WordBlob.from_words(WORDS).save(tmp_path)
    np.save(tmp_path / "offsets.npy", np.array([0, 3], dtype=np.uint32))
    with pytest.raises(LexiconError, match="does not belong"):
        WordBlob.load(tmp_path)
