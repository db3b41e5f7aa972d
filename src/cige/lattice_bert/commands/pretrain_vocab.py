"""Make a joint vocabulary: the word pieces of a BERT vocab.txt, then the most frequent words of a corpus.

The corpus is segmented into words by jieba. Words have two or more characters, at least one of them Chinese, and are
stored in lower case; English and numbers are covered by the word pieces.

Example:
  cige lattice-bert pretrain vocab corpus.txt.xz vocabulary --pieces vocab.txt --words 81000 --workers 8
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cige.commands.options import at_least
from cige.errors import LexiconError
from cige.lattice_bert.encoder.network_config import PAPER_N_WORDS
from cige.text.counted import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", metavar="CORPUS", help="UTF-8 text; plain, .gz or .xz")
    parser.add_argument("output", metavar="FOLDER", help="where to write the vocabulary")
    parser.add_argument("--pieces", metavar="VOCAB", required=True, help="the vocab.txt of any uncased BERT")
    parser.add_argument(
        "--words",
        type=at_least(0),
        default=PAPER_N_WORDS,
        metavar="K",
        help=f"maximum number of words (default: {PAPER_N_WORDS:,})",
    )
    parser.add_argument(
        "--min-count", type=at_least(1), default=1, metavar="N", help="minimum count of a word (default: 1)"
    )
    parser.add_argument(
        "--include",
        metavar="FILE",
        help="a word list that is added before the words of the corpus; its words count as words of --words",
    )
    parser.add_argument("--workers", type=at_least(1), default=1, metavar="N", help="processes (default: 1)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.folders.manifest import refuse_to_replace
    from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary, read_pieces
    from cige.lattice_bert.kinds import JOINT_VOCABULARY
    from cige.lexicon.word_counts import count_words
    from cige.lexicon.words_file import read_words

    # First, so that a wrong folder or file is reported before the corpus is read.
    refuse_to_replace(Path(args.output), kind=JOINT_VOCABULARY, error=LexiconError)
    pieces = read_pieces(args.pieces)
    include = read_words(args.include) if args.include else None
    with _progress(args.corpus) as on_progress:
        counts = count_words(args.corpus, n_workers=args.workers, on_progress=on_progress)
    vocabulary = JointVocabulary.from_counts(
        pieces, counts, args.words, min_count=args.min_count, include=include.words if include else ()
    )
    vocabulary.save(args.output)
    if include and include.report.n_refused:
        print(include.report)
    for note in counts.notes():
        print(note)
    if vocabulary.report and vocabulary.report.n_refused:
        print(vocabulary.report)
    n_skipped = vocabulary.report.n_skipped if vocabulary.report else 0  # in order, those of --include first
    n_cut = n_skipped - len(counts.ranked(min_count=args.min_count))
    if include and n_cut > 0:
        print(
            f"{args.include}: its last {counted(n_cut, 'word')} left out, because the vocabulary has no more than "
            f"{args.words:,} words; give a larger --words"
        )
    share = counts.share(vocabulary.words)
    print(
        f"corpus      {counted(counts.n_lines, 'line')}, {counted(counts.n_chars, 'character')}, "
        f"{counted(len(counts.counts), 'different word')}"
    )
    print(
        f"vocabulary  {counted(len(vocabulary), 'token')}: {counted(vocabulary.n_pieces, 'piece')} and "
        f"{counted(vocabulary.n_words, 'word')}"
    )
    print(f"coverage    {share:.1%} of the words of the corpus")
    print(f"wrote {args.output}")


@contextmanager
def _progress(path: str) -> Iterator[Callable[[int], None] | None]:
    """A progress bar if there is a terminal; without percentages for compressed text, whose size is not known."""
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

    from cige.folders.packed import unpack
    from cige.lexicon.text_file import open_file
    from cige.text.terminal_progress import TerminalProgress

    with open_file(path) as file:
        is_packed = unpack(file) is not file
    columns = ("words of the corpus", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with TerminalProgress(*columns, transient=True) as bar:
        task = bar.add_task("", total=None if is_packed else os.path.getsize(path))
        yield lambda n_bytes: bar.update(task, completed=n_bytes)
