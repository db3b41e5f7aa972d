"""Convert a corpus to pre-training data: its lattices, as memory-mapped shards.

The corpus has one sentence per line and a blank line between documents; long lines are cut at punctuation. Every n-th
document is held out for evaluation. If the command is interrupted, run it again: it continues where it stopped; on
finished data, it adds any missing shards.

Examples:
  cige lattice-bert pretrain data corpus.txt.xz --vocab vocabulary --output data
  cige lattice-bert pretrain data news.txt titles.txt --vocab vocabulary --output data --document-a-line --processes 8
  cige lattice-bert pretrain data crawl/*.txt.xz --vocab vocabulary --output data --no-words \\
    --engine ray --processes 256
"""

from __future__ import annotations

import argparse

from cige.commands.options import at_least
from cige.text.counted import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", nargs="+", metavar="CORPUS", help="UTF-8 text; plain, .gz or .xz")
    parser.add_argument(
        "--vocab", required=True, metavar="FOLDER", help="vocabulary that `cige lattice-bert pretrain vocab` wrote"
    )
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="where to write the data")
    parser.add_argument(
        "--processes", "--workers", type=at_least(1), default=1, metavar="N", help="processes or tasks (default: 1)"
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="processes of this machine, or Ray's (default: local)",
    )
    parser.add_argument("--document-a-line", action="store_true", help="every line is a document")
    parser.add_argument(
        "--max-line", type=at_least(1), default=80, metavar="N", help="maximum characters per sentence (default: 80)"
    )
    parser.add_argument(
        "--max-line-tokens",
        type=at_least(2),
        default=170,
        metavar="N",
        help="maximum lattice tokens per sentence (default: 170)",
    )
    parser.add_argument(
        "--held-out",
        type=at_least(0),
        default=200,
        metavar="N",
        help="hold out every Nth document; 0 for none (default: 200)",
    )
    parser.add_argument(
        "--no-words", action="store_true", help="do not run jieba; whole-word masking (BERT-our) needs its words"
    )
    parser.add_argument(
        "--shard-size",
        type=at_least(1),
        default=1_000_000,
        metavar="N",
        help="characters per shard (default: 1,000,000)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.lattice_bert.pretraining.corpus import CorpusRules
    from cige.lattice_bert.pretraining.data import open_data
    from cige.lattice_bert.pretraining.make_data import make_data
    from cige.lattice_bert.pretraining.make_shard import DataSettings

    rules = CorpusRules(max_line=args.max_line, is_document_a_line=args.document_a_line)
    settings = DataSettings(
        rules=rules,
        max_line_tokens=args.max_line_tokens,
        segment_words=not args.no_words,
        held_out=args.held_out,
        shard_size=args.shard_size,
    )
    report = make_data(
        args.corpus, args.vocab, args.output, settings=settings, n_workers=args.processes, engine=args.engine
    )
    for note in report.notes(rules):
        print(note)
    data = open_data(args.output, check_contents=False)
    print(
        f"corpus  {counted(report.n_documents, 'document')}, {counted(report.n_lines, 'line')}, "
        f"{counted(report.n_characters, 'character')}"
    )
    print(
        f"train   {counted(len(data.train), 'shard')}, {data.n_pieces:,} characters (word pieces) as "
        f"{data.n_tokens:,} lattice tokens, {data.n_tokens / data.n_pieces:.2f} per character"
    )
    n_held_out = sum(len(shard.word_starts) for shard in data.held_out)
    print(f"held out  {n_held_out:,} characters")
    print(f"wrote {args.output}")
