"""WordBlob: any number of words as one mapped text file and offsets into it, without a Python string per word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from tokenize import TokenError  # from the header of an .npy file

import numpy as np

from cige.errors import LexiconError

WORDS_FILE = "words.txt"  # one word per line, so that people can read it too
OFFSETS_FILE = "offsets.npy"
_BLOCK = 1 << 16
_BYTES = 1 << 20
_NEWLINE = 10
_NPY = b"\x93NUMPY"
# What NumPy raises for headers that nobody wrote by mistake.
BAD_HEADER = (ValueError, SyntaxError, TokenError, TypeError, LookupError, ArithmeticError, MemoryError, RecursionError)


class WordBlob(Sequence[str]):
    """A sequence of words.

    Attributes:
        blob: uint8[n_bytes], every word in UTF-8 followed by a newline.
        offsets: uint32 or uint64[n_words + 1], where each word begins; the last is n_bytes.
    """

    def __init__(self, *, blob: np.ndarray, offsets: np.ndarray) -> None:
        self.blob = blob
        self.offsets = offsets

    @classmethod
    def from_words(cls, words: Iterable[str]) -> WordBlob:
        """Build from words, which must not contain newlines."""
        buffer = bytearray()
        words = iter(words)
        while block := list(islice(words, _BLOCK)):
            buffer += "\n".join([*block, ""]).encode("utf-8")
        return cls.of_lines(buffer)

    @classmethod
    def of_lines(cls, lines: bytes | bytearray) -> WordBlob:
        """The words of UTF-8 text, each of which ends with a newline."""
        blob = np.frombuffer(lines, dtype=np.uint8)
        return cls(blob=blob, offsets=_offsets(blob))

    @classmethod
    def load(cls, folder: Path, *, sha256: str | None = None) -> WordBlob:
        """Map the two files in `folder`, which the caller has checked with their manifest; `sha256` comes from it."""
        offsets = load_array(folder / OFFSETS_FILE)
        try:
            blob = _map_bytes(folder / WORDS_FILE)
        except OSError as reason:
            raise LexiconError(f"{folder / WORDS_FILE}: cannot be read ({reason}); build the folder again") from reason
        if offsets.ndim != 1 or offsets.dtype.kind != "u" or not len(offsets) or offsets[-1] != len(blob):
            raise LexiconError(f"{folder}: {OFFSETS_FILE} does not belong to {WORDS_FILE}; build the folder again")
        words = cls(blob=blob, offsets=offsets)
        if sha256 is not None:
            words.sha256 = sha256  # this avoids reading a hundred megabytes to compute it
        return words

    def check(self) -> None:
        """Raises ValueError if the offsets are not where the lines of the blob begin; this reads every word."""
        if not np.array_equal(self.offsets, _offsets(self.blob)):
            raise ValueError("the offsets are those of other words")

    def save(self, folder: Path) -> None:
        self.blob.tofile(folder / WORDS_FILE)
        np.save(folder / OFFSETS_FILE, self.offsets)

    def __add__(self, other: WordBlob) -> WordBlob:
        """These words, then the others."""
        blob = np.concatenate([self.blob, other.blob])
        dtype = np.uint32 if len(blob) < 1 << 32 else np.uint64
        more = np.add(other.offsets[1:], self.offsets[-1], dtype=dtype)
        offsets = np.concatenate([self.offsets, more], dtype=dtype)
        return WordBlob(blob=blob, offsets=offsets)

    def only(self, is_kept: np.ndarray) -> WordBlob:
        """The words for which bool[n_words] is true."""
        lengths = np.diff(self.offsets)
        blob = self.blob[np.repeat(is_kept, lengths)]
        ends = np.cumsum(lengths[is_kept], dtype=self.offsets.dtype)
        return WordBlob(blob=blob, offsets=np.concatenate([np.zeros(1, self.offsets.dtype), ends]))

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the blob, which depends on the words and their order."""
        import hashlib  # loads OpenSSL; a loaded lexicon has its checksum in the manifest

        return hashlib.sha256(self.blob.data).hexdigest()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # int -> str; a Sequence must also accept slices
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"word {index} of {len(self)}")
        begin, end = int(self.offsets[index]), int(self.offsets[index + 1])
        if not begin < end <= len(self.blob):
            raise _damaged(f"word {index} has the bytes {begin} to {end} of {len(self.blob)}")
        try:
            return self.blob[begin : end - 1].tobytes().decode("utf-8")
        except UnicodeDecodeError as reason:
            raise _damaged(f"word {index}: {reason}") from reason

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, len(self), _BLOCK):
            end = min(begin + _BLOCK, len(self))
            try:
                words = self.blob[int(self.offsets[begin]) : int(self.offsets[end])].tobytes().decode("utf-8")
            except UnicodeDecodeError as reason:
                raise _damaged(f"words {begin} to {end}: {reason}") from reason
            block = words.split("\n")[:-1]
            if len(block) != end - begin:
                raise _damaged(f"{len(block)} lines for the words {begin} to {end}")
            yield from block


def finish_blob(folder: Path) -> WordBlob:
    """Write the offsets of a words file that was written line by line."""
    blob = _map_bytes(folder / WORDS_FILE)
    words = WordBlob(blob=blob, offsets=_offsets(blob))
    np.save(folder / OFFSETS_FILE, words.offsets)
    return words


def load_array(file: Path) -> np.ndarray:
    """Map an .npy file read-only. Raises a LexiconError if it is not an .npy file."""
    try:
        with open(file, "rb") as opened:
            if opened.read(len(_NPY)) != _NPY:  # NumPy would also open archives
                raise ValueError("its first bytes are those of another format")
        return np.load(file, mmap_mode="r", allow_pickle=False).view(np.ndarray)  # np.memmap itself slices slowly
    except (OSError, EOFError, *BAD_HEADER) as error:
        raise LexiconError(f"{file}: not a readable .npy file ({error}); build the folder again") from error


def _damaged(what: str) -> LexiconError:
    return LexiconError(f"{WORDS_FILE} and {OFFSETS_FILE} do not belong together ({what}); build the folder again")


def _offsets(blob: np.ndarray) -> np.ndarray:
    dtype = np.uint32 if len(blob) < 1 << 32 else np.uint64
    parts = [np.zeros(1, dtype)]
    for begin in range(0, len(blob), _BYTES):  # in parts, since the indices of a part have 64 bits
        ends = np.flatnonzero(blob[begin : begin + _BYTES] == _NEWLINE)
        parts.append((ends + (begin + 1)).astype(dtype))
    return np.concatenate(parts)


def _map_bytes(file: Path) -> np.ndarray:
    if file.stat().st_size == 0:  # an empty file cannot be mapped
        return np.empty(0, dtype=np.uint8)
    return np.memmap(file, dtype=np.uint8, mode="r").view(np.ndarray)
