"""Convert one unit of a corpus to one shard, in any process of any machine; existing shards are kept."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

from cige.errors import DataError
from cige.folders.manifest import MANIFEST, sha256
from cige.json_text import JsonObject, to_json
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.pretraining.corpus import CorpusReport, CorpusRules, documents_of
from cige.lattice_bert.pretraining.shards import ShardEntry, check_shard, write_shard
from cige.lattice_bert.pretraining.tokenise import DocumentTokenizer
from cige.lattice_bert.pretraining.units import Unit

VOCABULARY, SHARD_NAME = "vocabulary", "shard-{:05}"
_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, are spread evenly


@dataclass(frozen=True)
class DataSettings:
    """The settings that determine the shards, in addition to the corpus and the vocabulary.

    Attributes:
        rules: how lines become documents.
        max_line_tokens: a line with more lattice tokens is cut in two at punctuation, which is better than cutting it
            where an instance is full.
        segment_words: whether to segment words with jieba, which whole-word masking of characters needs and which takes
            most of the time.
        held_out: every n-th document is held out for evaluation; 0 holds out none.
        shard_size: approximate number of Chinese characters per shard; a shard has at least three times as many bytes
            of text, except the last.
    """

    rules: CorpusRules = field(default_factory=CorpusRules)
    max_line_tokens: int = 170
    segment_words: bool = True
    held_out: int = 200
    shard_size: int = 1_000_000


@dataclass(frozen=True)
class ShardJob:
    """The common inputs of all shards of a data folder.

    Attributes:
        folder: folder of the data, which contains the vocabulary, on storage that all processes share.
        vocabulary: fingerprint of the vocabulary.
    """

    folder: Path
    vocabulary: str
    settings: DataSettings

    def make(self, unit: Unit) -> ShardEntry:
        """Write the shard of a unit unless it exists; returns its entry in the index of the data.

        Raises:
            DataError: the shard exists and was made from something else.
            CigeError: the text cannot be read.
        """
        folder = self.folder / SHARD_NAME.format(unit.number)
        origin = self._origin(unit)
        if folder.exists():
            facts = check_shard(folder)
            if facts.get("origin") != origin:
                raise DataError(
                    f"{folder}: made from another corpus or with other settings; use those again, or choose another "
                    "output folder"
                )
        else:
            facts = self._write(unit, folder, origin)
        return {
            "name": folder.name,
            "text": [[stretch.path, stretch.start, stretch.stop] for stretch in unit.stretches],
            "sha256": sha256(folder / MANIFEST),
            "n_documents": facts["n_documents"],
            "n_lines": facts["n_lines"],
            "n_pieces": facts["n_pieces"],
            "n_tokens": facts["n_tokens"],
            "held_out": facts["held_out"],
            "report": facts["report"],
        }

    def _write(self, unit: Unit, folder: Path, origin: str) -> JsonObject:
        report, rules, every = CorpusReport(), self.settings.rules, self.settings.held_out
        documents = [document for stretch in unit.stretches for document in documents_of(stretch, rules, report)]
        # A unit may have fewer documents than `every`, so units start counting at different numbers.
        counted = int(unit.number * _GOLDEN % 1 * every) + 1
        is_held_out = [every > 0 and number % every == 0 for number in range(counted, counted + len(documents))]
        train = [document for document, held_out in zip(documents, is_held_out, strict=True) if not held_out]
        held_out = [document for document, held_out in zip(documents, is_held_out, strict=True) if held_out]
        shard, is_kept = _tokenizer(self).shard([*train, *held_out])
        n_held_out = int(is_kept[len(train) :].sum())
        return write_shard(shard, folder, n_held_out=n_held_out, origin=origin, report=asdict(report))

    def _origin(self, unit: Unit) -> str:
        """sha256 (hex) of the text, the vocabulary and the settings."""
        digest = hashlib.sha256(to_json([self.vocabulary, asdict(self.settings)], sort_keys=True).encode())
        for stretch in unit.stretches:
            digest.update(f"\n{unit.number} {stretch.begins_inside:d} {stretch.ends_inside:d}\n".encode())
            digest.update(stretch.read())
        return digest.hexdigest()


@lru_cache(maxsize=1)
def _tokenizer(job: ShardJob) -> DocumentTokenizer:
    """The tokeniser of this process."""
    words = JointVocabulary.load(job.folder / VOCABULARY)
    if words.fingerprint != job.vocabulary:
        raise DataError(f"{job.folder / VOCABULARY}: not the vocabulary that the shards are made with; restore it")
    settings = job.settings
    return DocumentTokenizer(words, max_tokens=settings.max_line_tokens, segment_words=settings.segment_words)
