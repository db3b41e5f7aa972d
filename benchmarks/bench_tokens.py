"""Text to lattice tokens: megabytes a second of one core.

    python benchmarks/bench_tokens.py corpus.txt --vocab VOCAB --json tokens.json

"all lines" is how a corpus is tokenised for pre-training, blocks of lines at a time; "a line at a time" is one call for
each line; "pieces alone" leaves words out, as BERT-our does. Each reads the same lines, the first --megabytes of the
corpus (UTF-8 counted). Processor seconds, medians; jieba's part in `cige lattice-bert pretrain data` is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from measure import environment, in_turns, options, report, write

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.token_lattice import TokenLattice
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lexicon.text_file import read_lines


def first_lines(corpus: Path, megabytes: float) -> list[str]:
    """Lines that hold text, until they come to that many megabytes."""
    lines: list[str] = []
    n_bytes = 0
    for _, raw in read_lines(corpus):
        if n_bytes >= megabytes * 1e6:
            break
        if line := raw.decode("utf-8", "replace").strip():
            lines.append(line)
            n_bytes += len(raw)
    return lines


def bench_tokens(lines: list[str], vocabulary: JointVocabulary, *, n_rounds: int) -> dict[str, Any]:
    """A row a way, as a JSON-ready dict."""
    lattice, pieces = LatticeTokenizer(vocabulary), LatticeTokenizer(vocabulary, use_words=False)

    def count(lattices: Iterable[TokenLattice]) -> int:
        return sum(x.n_tokens for x in lattices)

    ways = {
        "all lines": lambda: count(lattice.tokenize_all(lines)),
        "a line at a time": lambda: count(map(lattice.tokenize, lines)),
        "all lines, pieces alone": lambda: count(pieces.tokenize_all(lines)),
    }
    n_bytes, n_chars = sum(len(line.encode()) for line in lines), sum(map(len, lines))
    taken = in_turns(ways, n_rounds=n_rounds)
    rows = [
        {
            "what": what,
            "MB a second": n_bytes / taken[what].processor / 1e6,
            "characters a second": n_chars / taken[what].processor,
            "tokens a character": run() / n_chars,
        }
        for what, run in ways.items()
    ]
    words = {"n_pieces": len(vocabulary.pieces), "n_words": len(vocabulary.words)}
    return {"environment": environment(threads=1, n_rounds=n_rounds), **words, "n_lines": len(lines), "rows": rows}


def main() -> None:
    parser = options(__doc__, n_rounds=3, n_threads=None)
    parser.add_argument("corpus", type=Path, help="UTF-8 text; plain, .gz or .xz")
    parser.add_argument(
        "--vocab", required=True, metavar="FOLDER", help="what `cige lattice-bert pretrain vocab` wrote"
    )
    parser.add_argument("--megabytes", type=float, default=10, help="of the corpus (default: %(default)s)")
    args = parser.parse_args()
    vocabulary = JointVocabulary.load(args.vocab)
    lines = first_lines(args.corpus, args.megabytes)
    if not lines:
        parser.error(f"{args.corpus}: no line with text in the first {args.megabytes:g} MB; give a corpus of some text")
    result = bench_tokens(lines, vocabulary, n_rounds=args.rounds)
    report(f"{result['n_lines']:,} lines, {result['n_words']:,} words beside word pieces", result["rows"])
    write(result, args.json)


if __name__ == "__main__":
    main()
