"""Shards: tokenised documents as memory-mapped arrays; each is a folder that is written completely or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from cige.errors import DataError
from cige.folders.atomic import atomic_folder
from cige.folders.kinds import SHARD
from cige.folders.manifest import read_manifest, write_manifest
from cige.lattice.token_lattice import TokenLattice

VERSION = 1


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

    @property
    def counts(self) -> dict[str, int]:
        """Sizes by name, as listed in the manifest."""
        return {
            "n_documents": len(self.document_lines) - 1,
            "n_lines": len(self.line_tokens) - 1,
            "n_pieces": len(self.word_starts),
            "n_tokens": len(self.ids),
        }


@dataclass(frozen=True)
class TokenLine:
    """A tokenised line, from which shards are made.

    Attributes:
        tokens: its lattice.
        word_starts: bool[n_pieces].
    """

    tokens: TokenLattice
    word_starts: np.ndarray


def pack(documents: Sequence[Sequence[TokenLine]]) -> Shard:
    """Combine documents, each with at least one line, to a shard."""
    lines = [line for document in documents for line in document]
    line_pieces = _offsets([len(line.word_starts) for line in lines])
    tokens = [line.tokens for line in lines]
    return Shard(
        ids=_joined([t.ids for t in tokens], np.int32),
        starts=_joined([t.starts + first for t, first in zip(tokens, line_pieces, strict=False)], np.int32),
        lengths=_joined([t.ends - t.starts for t in tokens], np.uint16),
        line_tokens=_offsets([len(t.ids) for t in tokens]),
        line_pieces=line_pieces,
        document_lines=_offsets([len(document) for document in documents]),
        word_starts=_joined([line.word_starts for line in lines], np.bool_),
    )


def write_shard(shard: Shard, folder: Path, **facts: str) -> None:
    """Write a shard and its manifest, which lists its sizes and `facts`."""
    with atomic_folder(folder) as aside:
        for field in fields(shard):
            np.save(aside / f"{field.name}.npy", getattr(shard, field.name))
        write_manifest(aside, kind=SHARD, version=VERSION, **shard.counts, **facts)


def check_shard(folder: Path, *, check_contents: bool = False) -> dict[str, int | str]:
    """Check that every file of a shard exists in full size, and return the facts of its manifest; raises DataError.

    Args:
        check_contents: whether to compare sha256 as well, which reads every byte.
    """
    return read_manifest(folder, kind=SHARD, version=VERSION, error=DataError, check_contents=check_contents)


def open_shard(folder: Path) -> Shard:
    """Map the arrays of a shard into memory; raises DataError if one cannot be read."""
    try:
        return Shard(**{f.name: np.asarray(np.load(folder / f"{f.name}.npy", mmap_mode="r")) for f in fields(Shard)})
    except (OSError, ValueError) as reason:
        raise DataError(f"{folder}: cannot be read ({reason}); delete it and make the data again") from reason


def _joined(arrays: Sequence[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate([np.zeros(0, kind), *arrays], dtype=kind, casting="unsafe")


def _offsets(counts: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
