"""PretrainingData: an opened folder of shards, checked to be complete and unchanged since it was made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cige.errors import DataError
from cige.folders.kinds import PRETRAINING_DATA
from cige.folders.manifest import MANIFEST, read_manifest, sha256
from cige.json_text import to_json
from cige.lexicon.joint_vocabulary import JointVocabulary
from cige.pretraining.make_data import HELD_OUT, VERSION, VOCABULARY
from cige.pretraining.shards import Shard, check_shard, open_shard


@dataclass(frozen=True)
class PretrainingData:
    """The data that `make_data` wrote.

    Attributes:
        folder: folder of the data.
        vocabulary: the joint vocabulary of the token ids.
        train: shards to train on; held_out: shards to evaluate on, which may be empty.
        has_words: whether the data include the words of jieba's segmentation.
        n_tokens, n_pieces: lattice tokens and characters (word pieces) in `train`.
        fingerprint: sha256 (hex) of all shards and the vocabulary.
    """

    folder: Path
    vocabulary: JointVocabulary
    train: list[Shard]
    held_out: list[Shard]
    has_words: bool
    n_tokens: int
    n_pieces: int
    fingerprint: str


def open_data(folder: str | Path, *, check_contents: bool = True) -> PretrainingData:
    """Open a data folder.

    Args:
        check_contents: whether to compare the checksums of all files rather than only their sizes.

    Raises:
        DataError: it is not a data folder, it is incomplete, or a shard is missing, damaged or was replaced.
    """
    folder = Path(folder)
    facts = read_manifest(folder, kind=PRETRAINING_DATA, version=VERSION, error=DataError)
    vocabulary = JointVocabulary.load(folder / VOCABULARY)
    if vocabulary.fingerprint != facts["vocabulary"]:
        raise DataError(f"{folder / VOCABULARY}: not the vocabulary that the shards were made with; restore it")
    shards = facts["shards"]
    for name, expected in shards.items():
        if not (folder / name).is_dir():
            raise DataError(
                f"{folder / name}: missing; the command that made this data (cige pretrain data ... --output {folder}) "
                "makes missing shards again"
            )
        check_shard(folder / name, check_contents=check_contents)
        if sha256(folder / name / MANIFEST) != expected["sha256"]:
            raise DataError(f"{folder / name}: not the shard that was made here; delete it and make the data again")
    train = [name for name in shards if not name.startswith(HELD_OUT)]
    if not train:
        raise DataError(f"{folder}: nothing to train on, every document is held out; make the data with --held-out 0")
    n_tokens, n_pieces = (sum(shards[name][count] for name in train) for count in ("n_tokens", "n_pieces"))
    if not n_tokens:
        raise DataError(f"{folder}: no tokens; the tokeniser found none in any line of the corpus")
    return PretrainingData(
        folder=folder,
        vocabulary=vocabulary,
        train=[open_shard(folder / name) for name in train],
        held_out=[open_shard(folder / name) for name in shards if name.startswith(HELD_OUT)],
        has_words=facts["settings"]["segment_words"],
        n_tokens=n_tokens,
        n_pieces=n_pieces,
        fingerprint=hashlib.sha256(
            to_json([facts["vocabulary"], shards], sort_keys=True, ensure_ascii=True).encode()
        ).hexdigest(),
    )
