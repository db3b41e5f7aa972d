"""Build a lexicon folder from a vector file in one pass; row i of its matrix is the vector of word i."""

from __future__ import annotations

import os

from cige.errors import LexiconError
from cige.folders.kinds import LEXICON
from cige.lexicon.base_words import BaseWords
from cige.lexicon.report import LoadReport, ReportBuilder
from cige.lexicon.row_file import write_rows
from cige.lexicon.storage import new_folder
from cige.lexicon.user_changes import UserChanges
from cige.lexicon.vector_files import OnProgress, open_vectors
from cige.lexicon.word_rules import reason_to_refuse

DTYPE = "float16"


def build_with_vectors(
    path: str | os.PathLike[str], folder: str | os.PathLike[str], *, on_progress: OnProgress | None = None
) -> LoadReport:
    """Build a lexicon from a vector file of any size; `Lexicon.load` and `VectorTable.load` both open the folder.

    The memory does not depend on the width of the vectors: at most 180 bytes per word, 1.6 GB for 8.8M words.

    Args:
        path: word2vec text (plain, .gz, .xz) or binary.
        folder: written completely or not at all; contains vectors.npy, float16[V, width], and the files of a lexicon.
        on_progress: called regularly with (bytes of the file read, bytes of the file).

    Returns:
        The number of words taken, and the refused lines with their reasons: strings that cannot be words (single
        characters, spaces, ...), repeated words, wrong widths, and numbers that are not finite or too large for
        float16.

    Raises:
        LexiconError: the file cannot be read, is truncated or contains no word, or the folder cannot be written.
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
            BaseWords.build(words, None).save_beside_words(aside),
            vectors={"width": source.width, "dtype": DTYPE, "source_format": source.format},
        )
        UserChanges().save(aside)
    return done
