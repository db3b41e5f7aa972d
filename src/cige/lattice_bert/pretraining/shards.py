"""Shards: tokenised documents as memory-mapped arrays; each is a folder that is written completely or not at all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, overload

import numpy as np

from cige.errors import DataError
from cige.folders.atomic import atomic_folder
from cige.folders.manifest import read_manifest, write_manifest
from cige.json_text import JsonObject
from cige.lattice_bert.kinds import SHARD
from cige.lexicon.word_blob import load_array

MOST_OPEN = 1024  # a process may map 65,530 files by default (vm.max_map_count), and a shard has seven
VERSION = 2  # in version 1 no shard had both documents to train on and documents that are held out

_TYPES = {
    "ids": np.int32, "starts": np.int32, "lengths": np.uint16, "line_tokens": np.int64, "line_pieces": np.int64,
    "document_lines": np.int64, "word_starts": np.bool_,
}  # fmt: skip


@dataclass(frozen=True)
class Shard:
    """The concatenated documents of a shard; pieces are numbered from the first one of the shard.

    Attributes:
        ids: int32[n_tokens], vocabulary row of each lattice token, by line and within a line by (end, length).
        starts: int32[n_tokens], first piece of each token.
        lengths: uint16[n_tokens], number of pieces of each token.
        line_tokens: int64[n_lines + 1], first token of each line, then the number of tokens.
        line_pieces: int64[n_lines + 1], first piece of each line, then the number of pieces.
        document_lines: int64[n_documents + 1], first line of each document, then the number of lines.
        word_starts: bool[n_pieces], whether a word of the segmentation begins at a piece.
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    line_tokens: np.ndarray
    line_pieces: np.ndarray
    document_lines: np.ndarray
    word_starts: np.ndarray

    def parted(self, n_last: int) -> tuple[Shard, Shard]:
        """The shard without its last `n_last` documents, and these documents. Only the latter are copied. Raises a
        DataError if there are not so many documents."""
        n_documents = len(self.document_lines) - 1
        if not 0 <= n_last <= n_documents:
            raise DataError(f"{n_last} documents are held out of {n_documents}; make the data again")
        return self._part(0, n_documents - n_last), self._part(n_documents - n_last, n_documents)

    def _part(self, first: int, end: int) -> Shard:
        """Documents [first, end). Those from the first one on are not copied, and stay mapped."""
        line, end_line = self.document_lines[[first, end]].tolist()
        token, end_token = self.line_tokens[[line, end_line]].tolist()
        piece, end_piece = self.line_pieces[[line, end_line]].tolist()

        def moved(offsets: np.ndarray, by: int) -> np.ndarray:
            return offsets - offsets.dtype.type(by) if first else offsets

        return Shard(
            ids=self.ids[token:end_token],
            starts=moved(self.starts[token:end_token], piece),
            lengths=self.lengths[token:end_token],
            line_tokens=moved(self.line_tokens[line : end_line + 1], token),
            line_pieces=moved(self.line_pieces[line : end_line + 1], piece),
            document_lines=moved(self.document_lines[first : end + 1], line),
            word_starts=self.word_starts[piece:end_piece],
        )

    @property
    def counts(self) -> dict[str, int]:
        """Sizes by name, as listed in the manifest."""
        return {
            "n_documents": len(self.document_lines) - 1,
            "n_lines": len(self.line_tokens) - 1,
            "n_pieces": len(self.word_starts),
            "n_tokens": len(self.ids),
        }


_OFFSETS = ("line_tokens", "line_pieces", "document_lines")
NO_LINES = Shard(**{name: np.zeros(int(name in _OFFSETS), dtype) for name, dtype in _TYPES.items()})
"""A shard without any line."""


class ShardEntry(TypedDict, total=False):
    """A shard in the index of the data; the counts are those of its training documents."""

    name: str
    text: list[list[str | int]]
    sha256: str
    n_documents: int
    n_lines: int
    n_pieces: int
    n_tokens: int
    held_out: dict[str, int]
    report: JsonObject


def write_shard(shard: Shard, folder: Path, *, n_held_out: int = 0, **facts: Any) -> JsonObject:
    """Write a shard and its manifest, which lists its sizes and `facts`; returns the manifest's facts.

    Args:
        n_held_out: so many of the last documents are held out for evaluation, and are counted separately.
    """
    train, held_out = shard.parted(n_held_out)
    facts |= train.counts | {"held_out": held_out.counts}
    with atomic_folder(folder) as aside:
        for name in _TYPES:
            np.save(aside / f"{name}.npy", getattr(shard, name))
        write_manifest(aside, kind=SHARD, version=VERSION, **facts)
    return facts


def check_shard(folder: Path, *, check_contents: bool = False) -> JsonObject:
    """The facts of a shard's manifest; DataError if a file is missing, has another size or, if checked, sha256."""
    return read_manifest(folder, kind=SHARD, version=VERSION, error=DataError, check_contents=check_contents)


def open_shard(folder: Path, *, n_ids: int | None = None) -> Shard:
    """Map the arrays of a shard into memory, those of its held-out documents too, and check that they fit together.

    Args:
        n_ids: number of ids of its vocabulary, which no id may reach; None does not check this.

    Raises:
        DataError: one cannot be read, or they do not fit together.
    """
    try:
        shard = Shard(**{name: load_array(folder / f"{name}.npy") for name in _TYPES})
        _check_arrays(shard, n_ids=n_ids)
        return shard
    except (OSError, ValueError) as reason:
        raise DataError(f"{folder}: cannot be read ({reason}); delete it and make the data again") from reason


class ShardList(Sequence[Shard]):
    """The train documents of some shards; the shards that were used last stay open.

    Args:
        n_held_out: how many documents at the end of each shard are held out.
        check_contents: whether to compare the checksums of a shard when it is opened for the first time.
    """

    def __init__(
        self, folders: Sequence[Path], n_held_out: Sequence[int], *, check_contents: bool, n_ids: int | None = None
    ):
        self._n_ids = n_ids
        self._folders, self._n_held_out = list(folders), list(n_held_out)
        self._unchecked = set(range(len(self._folders))) if check_contents else set()
        self._open: OrderedDict[int, Shard] = OrderedDict()

    def __len__(self) -> int:
        return len(self._folders)

    @overload
    def __getitem__(self, number: int) -> Shard: ...
    @overload
    def __getitem__(self, number: slice) -> list[Shard]: ...
    def __getitem__(self, number: int | slice) -> Shard | list[Shard]:
        """The requested shards. Raises DataError if one is damaged or cannot be read."""
        if isinstance(number, slice):
            return [self[k] for k in range(len(self))[number]]
        number = range(len(self))[number]
        if number not in self._open:
            folder = self._folders[number]
            if number in self._unchecked:
                check_shard(folder, check_contents=True)
                self._unchecked.discard(number)
            self._open[number] = open_shard(folder, n_ids=self._n_ids).parted(self._n_held_out[number])[0]
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(number)
        return self._open[number]

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_open": OrderedDict()}  # arrays that were pickled would no longer be mapped


def joined(shards: Sequence[Shard]) -> Shard:
    """The documents of several shards as one, in memory."""

    def concatenated(name: str) -> np.ndarray:
        return np.concatenate([getattr(shard, name) for shard in shards])

    def offsets(name: str) -> np.ndarray:
        ends = np.cumsum([0, *(int(getattr(shard, name)[-1]) for shard in shards)])
        parts = [getattr(shard, name)[1:] + end for shard, end in zip(shards, ends, strict=False)]
        return np.concatenate([np.zeros(1, np.int64), *parts])

    firsts = np.cumsum([0, *(len(shard.word_starts) for shard in shards)]).astype(np.int32)
    return Shard(
        ids=concatenated("ids"),
        starts=np.concatenate([shard.starts + first for shard, first in zip(shards, firsts, strict=False)]),
        lengths=concatenated("lengths"),
        line_tokens=offsets("line_tokens"),
        line_pieces=offsets("line_pieces"),
        document_lines=offsets("document_lines"),
        word_starts=concatenated("word_starts"),
    )


def _check_arrays(shard: Shard, *, n_ids: int | None) -> None:
    """Raise a ValueError if an array has another form, or leads out of another; as fast as reading them once."""
    for name, dtype in _TYPES.items():
        array = getattr(shard, name)
        if array.ndim != 1 or array.dtype != dtype:
            raise ValueError(f"{name} is {array.dtype}{list(array.shape)}; expected a list of {np.dtype(dtype)}")
    ids, starts, lengths = shard.ids, shard.starts, shard.lengths
    line_tokens, line_pieces = shard.line_tokens, shard.line_pieces
    if not len(ids) == len(starts) == len(lengths):
        raise ValueError(f"{len(ids)} ids for {len(starts)} starts and {len(lengths)} lengths")
    if len(line_tokens) != len(line_pieces):
        raise ValueError(f"line_tokens is for {len(line_tokens)} lines, line_pieces for {len(line_pieces)}")
    _check_offsets("line_tokens", line_tokens, len(ids))
    _check_offsets("line_pieces", line_pieces, len(shard.word_starts))
    _check_offsets("document_lines", shard.document_lines, len(line_tokens) - 1)
    if not len(ids):
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or (n_ids is not None and high >= n_ids):
        raise ValueError(f"ids from {low} to {high}; expected 0 to {'...' if n_ids is None else n_ids - 1}")
    n_tokens = np.diff(line_tokens)
    begins, ends = (np.repeat(of_line, n_tokens) for of_line in (line_pieces[:-1], line_pieces[1:]))
    if not lengths.min() or (starts < begins).any() or (lengths > ends - starts).any():
        raise ValueError("a token is empty or extends beyond its line")


def _check_offsets(name: str, offsets: np.ndarray, n: int) -> None:
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != n or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"{name} does not ascend from 0 to {n}")
