"""What the instances of some data are like: how long they are, and in how many the order of two texts is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cige.pretraining.dataset import InstanceSet
from cige.pretraining.instances import NO_LABEL
from cige.pretraining.shards import Shard


@dataclass(frozen=True)
class Census:
    """Shares are fractions of 1.

    Attributes:
        n_instances: of an epoch; n_seen: those of them that were looked at, drawn at random.
        n_characters, n_tokens: on average, [CLS] and [SEP] included; most_tokens: in the largest instance of all.
        with_label: share of instances with a sentence label.
        in_one_document: share of instances whose text is of one document; with_label_of_these: with a sentence label.
    """

    n_instances: int
    n_seen: int
    n_characters: float
    n_tokens: float
    most_tokens: int
    with_label: float
    in_one_document: float
    with_label_of_these: float


def census(instances: InstanceSet, *, n_most: int = 5000, epoch: int = 0, seed: int = 0) -> Census:
    """Look at up to `n_most` instances of an epoch."""
    n_tokens = instances.n_tokens(epoch)
    n = len(n_tokens)
    numbers = np.random.default_rng(seed).permutation(n)[:n_most].tolist()
    seen = [instances.instance(epoch, number) for number in numbers]
    labelled = np.array([instance.sentence_label != NO_LABEL for instance in seen])
    is_whole = np.array([not instances.passage(epoch, number).document_ends for number in numbers])
    return Census(
        n_instances=n,
        n_seen=len(seen),
        n_characters=float(np.mean([instance.row.ends[-1] + 1 for instance in seen])),
        n_tokens=float(n_tokens.mean()),
        most_tokens=int(n_tokens.max()),
        with_label=float(labelled.mean()),
        in_one_document=float(is_whole.mean()),
        with_label_of_these=float(labelled[is_whole].mean()) if is_whole.any() else 0.0,
    )


def long_documents(shards: list[Shard], n_characters: int) -> tuple[float, float]:
    """The share of documents with at least so many characters, and the share of all characters that they hold."""
    sizes = np.concatenate([np.diff(shard.line_pieces[shard.document_lines]) for shard in shards])
    is_long = sizes >= n_characters
    return float(is_long.mean()), float(sizes[is_long].sum() / sizes.sum())
