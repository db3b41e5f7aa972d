"""A corpus, a vocabulary and data small enough to make and train on within a test."""

from __future__ import annotations

import random
from pathlib import Path

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.pretraining.corpus import CorpusRules
from cige.lattice_bert.pretraining.make_data import make_data
from cige.lattice_bert.pretraining.make_shard import DataSettings

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["研究", "研究生", "生活", "很充实", "充实", "北京", "大学", "北京大学", "学生", "今天", "天气", "天下", "下雨"]
CHARS = sorted({char for word in WORDS for char in word} | set("，。我他在去有不"))
PIECES = [*SPECIAL, *CHARS, "ai", "##b", "a"]


def vocabulary() -> JointVocabulary:
    return JointVocabulary.build(PIECES, WORDS)


def lines(n: int, *, seed: int) -> list[str]:
    """Made-up sentences of 3 to 14 words and characters."""
    rng = random.Random(seed)
    units = WORDS + list("我他在去有不，")
    return ["".join(rng.choices(units, k=rng.randint(3, 14))) + "。" for _ in range(n)]


def corpus_text(n_documents: int, *, seed: int = 1) -> str:
    """Documents of 1 to 8 lines."""
    rng = random.Random(seed)
    documents = [lines(rng.randint(1, 8), seed=rng.randrange(10**6)) for _ in range(n_documents)]
    return "\n\n".join("\n".join(document) for document in documents) + "\n"


def data_folder(
    folder: Path, *, text: str | None = None, shard_size: int = 1500, held_out: int = 5, segment_words: bool = False
) -> Path:
    """folder/data, with its corpus and vocabulary beside it; by default 60 documents in a few shards."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.txt").write_text(text or corpus_text(60), encoding="utf-8")
    vocabulary().save(folder / "vocabulary")
    settings = DataSettings(
        rules=CorpusRules(max_line=40), held_out=held_out, shard_size=shard_size, segment_words=segment_words
    )
    make_data([folder / "corpus.txt"], folder / "vocabulary", folder / "data", settings=settings, show_progress=False)
    return folder / "data"
