"""PretrainingData: an opened folder of shards, checked to be complete and unchanged since it was made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cige.errors import DataError
from cige.folders.manifest import MANIFEST, read_manifest, sha256
from cige.json_text import JsonObject, to_json
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.kinds import PRETRAINING_DATA
from cige.lattice_bert.pretraining.make_data import VERSION
from cige.lattice_bert.pretraining.make_shard import VOCABULARY
from cige.lattice_bert.pretraining.shards import Shard, ShardEntry, ShardList, check_shard, joined, open_shard

HELD_OUT_V1 = "held-out"  # shards of version 1 with this name hold nothing but held-out documents
MOST_HELD_OUT = 5_000_000  # pieces to evaluate on; further held-out documents are not read


@dataclass(frozen=True)
class PretrainingData:
    """The data that `make_data` wrote, with the joint vocabulary of its token ids.

    Attributes:
        train: shards to train on, opened as they are read; held_out: shards to evaluate on, which may be empty.
        has_words: whether the data include the words of jieba's segmentation.
        n_tokens, n_pieces: lattice tokens and characters (word pieces) in `train`.
        fingerprint: sha256 (hex) of all shards and the vocabulary.
    """

    folder: Path
    vocabulary: JointVocabulary
    train: Sequence[Shard]
    held_out: Sequence[Shard]
    has_words: bool
    n_tokens: int
    n_pieces: int
    fingerprint: str


def open_data(folder: str | Path, *, check_contents: bool = True, check_as_opened: bool = False) -> PretrainingData:
    """Open a data folder; raises DataError if it is none or incomplete, or a shard is missing, damaged or replaced.

    Args:
        check_contents: whether to compare the checksums of all files now rather than only their sizes.
        check_as_opened: whether to compare those of a shard when training reads it for the first time.
    """
    folder = Path(folder)
    facts = read_manifest(folder, kind=PRETRAINING_DATA, version=VERSION, error=DataError)
    vocabulary = JointVocabulary.load(folder / VOCABULARY)
    if vocabulary.fingerprint != facts.get("vocabulary"):
        raise DataError(f"{folder / VOCABULARY}: not the vocabulary that the shards were made with; restore it")
    shards = _entries(facts, folder)
    for name, expected in shards.items():
        if not (folder / name).is_dir():
            raise DataError(
                f"{folder / name}: missing; the command that made this data (cige lattice-bert pretrain data ... "
                f"--output {folder}) makes missing shards again"
            )
        check_shard(folder / name, check_contents=check_contents)
        if sha256(folder / name / MANIFEST) != expected.get("sha256"):
            raise DataError(f"{folder / name}: not the shard that was made here; delete it and make the data again")
    train = {name: shard for name, shard in shards.items() if not name.startswith(HELD_OUT_V1) and shard["n_documents"]}
    if not train:
        raise DataError(f"{folder}: nothing to train on, every document is held out; make the data with --held-out 0")
    n_tokens, n_pieces = (sum(shard[count] for shard in train.values()) for count in ("n_tokens", "n_pieces"))
    if not n_tokens:
        raise DataError(f"{folder}: no tokens; the tokeniser found none in any line of the corpus")
    n_held_out = [_n_held_out(shard) for shard in train.values()]
    checksums = {name: shard["sha256"] for name, shard in shards.items()}
    return PretrainingData(
        folder=folder,
        vocabulary=vocabulary,
        train=ShardList(
            [folder / name for name in train], n_held_out, check_contents=check_as_opened, n_ids=len(vocabulary)
        ),
        held_out=_held_out(folder, shards, n_ids=len(vocabulary)),
        has_words=bool(facts["settings"].get("segment_words")),
        n_tokens=n_tokens,
        n_pieces=n_pieces,
        fingerprint=hashlib.sha256(to_json([facts["vocabulary"], checksums]).encode()).hexdigest(),
    )


def _n_held_out(shard: ShardEntry) -> int:
    """The number of held-out documents at the end of a shard; none in version 1."""
    return int(shard.get("held_out", {}).get("n_documents", 0))


def _entries(facts: JsonObject, folder: Path) -> dict[str, ShardEntry]:
    """The entries of all shards in the index of the data; raises a DataError if it is damaged."""
    shards = facts.get("shards")
    if (
        not isinstance(shards, dict)
        or not isinstance(facts.get("settings"), dict)
        or not all(Path(name).name == name and _is_entry(entry) for name, entry in shards.items())
    ):
        raise DataError(f"{folder / MANIFEST}: its list of shards is damaged; make the data again")
    return shards


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("held_out", {}), dict):
        return False
    counts = [entry.get(name) for name in ("n_documents", "n_tokens", "n_pieces")]
    return all(type(n) is int and n >= 0 for n in [*counts, entry.get("held_out", {}).get("n_documents", 0)])


def _held_out(folder: Path, shards: dict[str, ShardEntry], *, n_ids: int) -> list[Shard]:
    held_out: list[Shard] = []
    n_pieces = 0
    for name, facts in shards.items():
        is_whole = name.startswith(HELD_OUT_V1)
        if n_pieces < MOST_HELD_OUT and (is_whole or _n_held_out(facts)):
            shard = open_shard(folder / name, n_ids=n_ids)
            held_out.append(shard if is_whole else shard.parted(_n_held_out(facts))[1])
            n_pieces += len(held_out[-1].word_starts)
    return [joined(held_out)] if held_out else []
