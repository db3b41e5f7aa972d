"""From a sentence to what a model reads: matching, the lattice, rows of the tables, a padded batch.

Sentences are the 2,000 last ones of MSRA's training part, one after another on one core. Each stage contains the one
above it, so the differences are what a stage adds.
"""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import texts_of
from benchmarks.measure import in_turns
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

TABLES = {"cases": "microseconds a sentence up to and with each stage, {n_chars:.1f} characters a sentence"}
N_SENTENCES = 2000
BATCH = 16


def bench(*, data_dir: Path, rounds: int = 7) -> dict[str, Any]:
    """The bundled lexicon and jieba's."""
    texts = texts_of(data_dir, "msra", "train")[-N_SENTENCES:]
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
    pairs = {"bundled": (bundled, vocabulary), "jieba": (jieba, large)}
    cases = [{"lexicon": name} | case(*pair, texts, n_rounds=rounds) for name, pair in pairs.items()]
    return {"n_sentences": len(texts), "n_chars": sum(map(len, texts)) / len(texts), "cases": cases}


def case(lexicon: Lexicon, vocabulary: Vocabulary, texts: list[str], *, n_rounds: int) -> dict[str, Any]:
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
    row: dict[str, Any] = {"n_words": len(lexicon), "words_a_character": n_words / n_chars}
    row["nodes_a_sentence"] = (n_chars + n_words) / len(texts)
    for stage, timing in in_turns(stages, n_rounds=n_rounds).items():
        row[f"{stage}_us"] = timing.clock / len(texts) * 1e6
        row[f"{stage}_processor_us"] = timing.processor / len(texts) * 1e6
    return row
