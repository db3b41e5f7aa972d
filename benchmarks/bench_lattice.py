"""From a sentence to what a model reads: matching, the lattice, rows of the tables, a padded batch.

    python benchmarks/bench_lattice.py --data-dir DATA --json lattice.json

Sentences are the 2,000 last ones of MSRA's training part, one after another on one core. Each stage contains the one
above it, so the differences are what a stage adds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from measure import add_data_option, environment, in_turns, options, report, write

from cige.data import read_sentences
from cige.data.model_words import load_words
from cige.data.padding import pad_lattices
from cige.data.vocabulary import Vocabulary
from cige.errors import ModelError
from cige.folders.hub import BUNDLED
from cige.folders.kinds import TAGGER
from cige.folders.manifest import read_manifest
from cige.lattice.lattice import build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.models.model import FORMAT_VERSION
from cige.text.normalize import normalize

N_SENTENCES = 2000
BATCH = 16


def case(name: str, lexicon: Lexicon, vocabulary: Vocabulary, texts: list[str], *, n_rounds: int) -> dict[str, Any]:
    """Microseconds a sentence up to and with each stage."""
    snapshot = lexicon.snapshot()
    lattices = [build_lattice(text, snapshot) for text in texts]
    n_chars, n_words = sum(map(len, texts)), sum(lattice.n_words for lattice in lattices)

    def padded() -> None:
        for start in range(0, len(texts), BATCH):
            batch = [build_lattice(text, snapshot) for text in texts[start : start + BATCH]]
            pad_lattices([vocabulary.encode(lattice) for lattice in batch])

    stages = {
        "match": lambda: [snapshot.match(normalize(text)) for text in texts],
        "lattice": lambda: [build_lattice(text, snapshot) for text in texts],
        "rows": lambda: [vocabulary.encode(build_lattice(text, snapshot)) for text in texts],
        "batch": padded,
    }
    taken = in_turns(stages, n_rounds=n_rounds)
    return {
        "lexicon": name,
        "n_words": len(lexicon),
        "words_a_character": n_words / n_chars,
        "nodes_a_sentence": (n_chars + n_words) / len(texts),
        **{f"{stage}_us": timing.clock / len(texts) * 1e6 for stage, timing in taken.items()},
        **{f"{stage}_processor_us": timing.processor / len(texts) * 1e6 for stage, timing in taken.items()},
    }


def bench_lattice(data_dir: Path, *, n_rounds: int = 7) -> dict[str, Any]:
    """The bundled lexicon and jieba's, as a JSON-ready dict.

    Args:
        data_dir: holds ner/msra/train.bmes and lexicon/jieba.txt.xz.
    """
    texts = [s.text for s in read_sentences(data_dir / "ner" / "msra" / "train.bmes")[-N_SENTENCES:]]
    facts = read_manifest(BUNDLED, kind=TAGGER, version=FORMAT_VERSION, error=ModelError)
    vocabulary, bundled = load_words(BUNDLED, facts)
    jieba = Lexicon.from_file(data_dir / "lexicon" / "jieba.txt.xz")
    large = Vocabulary(
        chars=vocabulary.chars,
        bigrams=vocabulary.bigrams,
        word_rows=np.arange(len(jieba), dtype=np.int32),
        n_tuned=vocabulary.n_tuned,
        n_rows=vocabulary.n_rows,
    )
    return {
        "environment": environment(threads=1, n_rounds=n_rounds),
        "n_sentences": len(texts),
        "n_chars": sum(map(len, texts)) / len(texts),
        "cases": [
            case("bundled", bundled, vocabulary, texts, n_rounds=n_rounds),
            case("jieba", jieba, large, texts, n_rounds=n_rounds),
        ],
    }


def main() -> None:
    parser = options(__doc__, n_rounds=7, n_threads=None)
    add_data_option(parser)
    args = parser.parse_args()
    result = bench_lattice(args.data_dir, n_rounds=args.rounds)
    report(
        f"microseconds a sentence up to and with each stage, {result['n_chars']:.1f} characters a sentence",
        result["cases"],
    )
    write(result, args.json)


if __name__ == "__main__":
    main()
