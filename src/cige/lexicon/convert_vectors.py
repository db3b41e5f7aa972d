"""Convert word2vec files of any size to a folder of vectors, or to a lexicon with vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from cige.errors import LexiconError
from cige.folders.kinds import LEXICON, VECTORS
from cige.lexicon.base_words import BaseWords
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.report import LoadReport, ReportBuilder
from cige.lexicon.row_file import DTYPES, OVERFLOW, VECTORS_FILE, RowFile, write_rows
from cige.lexicon.storage import new_folder
from cige.lexicon.text_file import is_zip
from cige.lexicon.user_changes import UserChanges
from cige.lexicon.vector_files import OnProgress, VectorBlock, open_vectors
from cige.lexicon.vectors import PRESENT_FILE, HashIndex, VectorTable
from cige.lexicon.word_rules import DUPLICATE, reason_to_refuse

_BLOCK = 4096


def convert_vectors(
    path: str | os.PathLike[str],
    out_folder: str | os.PathLike[str],
    *,
    lexicon: Lexicon | None = None,
    dtype: str = "float16",
    on_progress: OnProgress | None = None,
) -> LoadReport:
    """Stream vectors into a folder that `VectorTable.load` maps, written completely or not at all.

    The memory does not grow with the matrix: about 180 bytes per word without a lexicon, and one byte per word of the
    lexicon with one. The report lists the refused lines; with a lexicon, it also counts vectors of other words
    (n_skipped) and base words without a vector (n_missing). Raises a LexiconError if the file cannot be read, or the
    folder cannot be written.

    Args:
        path: word2vec text (plain, .gz, .xz) or binary, or an .npz file or a folder of this package.
        lexicon: if given, row i is the vector of its base word i, or zeros if there is none; present.npy says which
            words have a vector.
        dtype: "float16" or "float32".
        on_progress: called regularly with (bytes of the file read, bytes of the file).
    """
    if dtype not in DTYPES:
        raise LexiconError(f"dtype {dtype!r}: expected one of {', '.join(DTYPES)}")
    format, width, blocks_of = _opened(path)
    report = ReportBuilder(source=str(path), format=format)
    blocks = blocks_of(report, on_progress)
    with new_folder(out_folder, kind=VECTORS) as (aside, facts):
        if lexicon is None:
            words = write_rows(blocks, aside, width=width, dtype=dtype, report=report)
            n_taken = len(words)
        else:
            words = lexicon.words
            words.save(aside)
            with RowFile(aside / VECTORS_FILE, width=width, dtype=dtype) as matrix:
                present = _write_aligned(blocks, matrix, report, lexicon)
            np.save(aside / PRESENT_FILE, present)
            n_taken = int(present.sum())
            report.n_missing = len(present) - n_taken
        done = report.build(n_taken=n_taken)
        if done.n_refused and not done.n_taken and not done.n_skipped:
            raise LexiconError(f"no usable vector\n{done}")
        HashIndex.build(words).save(aside)
        facts.update(
            n_words=len(words),
            n_vectors=n_taken,
            width=width,
            dtype=dtype,
            source_format=format,
            lexicon=lexicon.fingerprint if lexicon is not None else None,
        )
    return done


def _opened(
    path: str | os.PathLike[str],
) -> tuple[str, int, Callable[[ReportBuilder, OnProgress | None], Iterator[VectorBlock]]]:
    """The format, the width and the blocks of vectors of a file of any supported format."""
    if Path(path).is_dir() or is_zip(path):
        table = VectorTable.load(path)
        return "folder" if Path(path).is_dir() else "npz", table.width, lambda report, on_progress: _table_blocks(table)
    source = open_vectors(path)
    return source.format, source.width, source.blocks


def _table_blocks(table: VectorTable) -> Iterator[VectorBlock]:
    rows = np.arange(len(table)) if table.present is None else np.flatnonzero(table.present)
    for begin in range(0, len(rows), _BLOCK):
        block = rows[begin : begin + _BLOCK]
        lines = (block + 1).tolist()
        yield VectorBlock(lines, [table.words[row - 1] for row in lines], table.vectors[block].astype(np.float32))


def _write_aligned(
    blocks: Iterator[VectorBlock], matrix: RowFile, report: ReportBuilder, lexicon: Lexicon
) -> np.ndarray:
    """Write the vectors of base words; returns bool[V], which of them have a vector."""
    present = np.zeros(len(lexicon), dtype=bool)
    matrix.extend(len(lexicon))
    for block in blocks:
        cast, fits = matrix.cast(block.vectors)
        for k, (line, word) in enumerate(zip(block.lines, block.words, strict=True)):
            word_id = lexicon.id(word)
            if word_id is None:
                report.n_skipped += 1
            elif present[word_id] or not fits[k]:
                report.refuse(line, word, DUPLICATE if present[word_id] else OVERFLOW)
            else:
                matrix.write(word_id, cast[k])
                present[word_id] = True
    return present


DTYPE = "float16"


def build_with_vectors(
    path: str | os.PathLike[str], folder: str | os.PathLike[str], *, on_progress: OnProgress | None = None
) -> LoadReport:
    """Build a lexicon from a word2vec file of any size; `Lexicon.load` and `VectorTable.load` both open the folder.

    Row i of its vectors.npy, float16[V, width], is the vector of word i. The memory does not depend on the width: at
    most 180 bytes per word, 1.6 GB for 8.8M words. The report lists the refused lines: strings that cannot be words,
    repeated words, wrong widths, and numbers that are not finite or too large for float16. Arguments and errors are
    those of `convert_vectors`; it is also an error if no word can be used.
    """
    source = open_vectors(path)
    report = ReportBuilder(source=str(path), format=source.format)
    with new_folder(folder, kind=LEXICON) as (aside, facts):
        blocks = source.blocks(report, on_progress)
        words = write_rows(blocks, aside, width=source.width, dtype=DTYPE, report=report, reason=reason_to_refuse)
        done = report.build(n_taken=len(words))
        if not done.n_taken:
            raise LexiconError(f"no usable word; expected words of two or more characters\n{done}")
        facts.update(
            BaseWords.build(words, None).save(aside, has_words=True),
            vectors={"width": source.width, "dtype": DTYPE, "source_format": source.format},
        )
        UserChanges().save(aside)
    return done
