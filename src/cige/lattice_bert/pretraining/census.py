"""Statistics of instances: their length, how many have a label for the order task, and what is masked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cige.lattice_bert.pretraining.dataset import InstanceSet
from cige.lattice_bert.pretraining.instances import NO_LABEL, Instance
from cige.lattice_bert.pretraining.masking import NO_GROUP
from cige.lattice_bert.pretraining.shards import Shard

LENGTHS = (("1", 1, 1), ("2", 2, 2), ("3-4", 3, 4), ("5-8", 5, 8), ("9-16", 9, 16), ("17+", 17, 10**9))


@dataclass(frozen=True)
class Census:
    """Statistics of the instances of the first epoch. Shares are between 0 and 1.

    Attributes:
        n_instances: number of instances of the epoch; n_seen: number of those that were examined, drawn at random.
        n_characters, n_tokens: mean numbers per instance, including [CLS] and [SEP]; most_tokens: number of tokens of
            the largest instance.
        with_label: share of instances with a sentence label.
        in_one_document: share of instances with text of only one document; with_label_of_these: the share of these
            with a sentence label.
        masked: share of tokens to be predicted; masked_by_length: for units that are masked as a whole (segments,
            words or single tokens), by their number of tokens, how many there are and the share that is masked.
    """

    n_instances: int
    n_seen: int
    n_characters: float
    n_tokens: float
    most_tokens: int
    with_label: float
    in_one_document: float
    with_label_of_these: float
    masked: float
    masked_by_length: dict[str, tuple[int, float]]


def census(instances: InstanceSet, *, n_most: int = 5000) -> Census:
    """Compute the statistics of up to `n_most` instances."""
    n_tokens = instances.n_tokens(0)
    numbers = np.random.default_rng(0).permutation(len(n_tokens))[:n_most].tolist()
    seen = [instances.instance(0, number) for number in numbers]
    sizes, is_masked = _masked(instances, seen, numbers)
    labelled = np.array([instance.sentence_label != NO_LABEL for instance in seen])
    is_whole = np.array([not instances.passage(0, number).document_ends for number in numbers])
    return Census(
        n_instances=len(n_tokens),
        n_seen=len(seen),
        n_characters=float(np.mean([instance.row.ends[-1] + 1 for instance in seen])),
        n_tokens=float(n_tokens.mean()),
        most_tokens=int(n_tokens.max()),
        with_label=float(labelled.mean()),
        in_one_document=float(is_whole.mean()),
        with_label_of_these=float(labelled[is_whole].mean()) if is_whole.any() else 0.0,
        masked=float(sizes[is_masked].sum() / sum(len(instance.row.ids) for instance in seen)),
        masked_by_length={
            name: (int(in_group.sum()), float(is_masked[in_group].mean()))
            for name, in_group in ((name, (sizes >= first) & (sizes <= last)) for name, first, last in LENGTHS)
            if in_group.any()
        },
    )


def long_documents(shards: Sequence[Shard], n_characters: int) -> tuple[float, float]:
    """The share of documents with at least `n_characters` characters, and their share of all characters."""
    sizes = np.concatenate([np.diff(shard.line_pieces[shard.document_lines]) for shard in shards])
    is_long = sizes >= n_characters
    return float(is_long.mean()), float(sizes[is_long].sum() / sizes.sum())


def _masked(instances: InstanceSet, seen: list[Instance], numbers: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """int[n], bool[n]: the number of tokens of each unit that is masked as a whole, and whether it was masked."""
    sizes, is_masked = [], []
    for instance, number in zip(seen, numbers, strict=True):
        groups = instances.groups(instance)
        group_sizes = np.bincount(groups[groups != NO_GROUP])
        hit = np.zeros(len(group_sizes), np.bool_)
        hit[groups[instances.masked(0, number).positions]] = True
        sizes.append(group_sizes[group_sizes > 0])
        is_masked.append(hit[group_sizes > 0])
    return np.concatenate(sizes), np.concatenate(is_masked)
