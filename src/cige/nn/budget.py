"""Batches that fit into memory, measured in pairs of lattice nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def batches_by_budget(n_nodes: Sequence[int], *, max_sentences: int, max_pairs: int) -> Iterator[list[int]]:
    """Divide sentences, in the given order, into batches that fit into memory: lists of positions in `n_nodes`.

    A batch has at most `max_sentences` sentences and at most `max_pairs` node pairs, counted as sentences x (longest
    sentence)^2, because scores are padded. A sentence that exceeds the budget is a batch of its own.
    """
    batch: list[int] = []
    longest = 0
    for position, n in enumerate(n_nodes):
        grown = max(longest, n)
        if batch and (len(batch) == max_sentences or (len(batch) + 1) * grown * grown > max_pairs):
            yield batch
            batch, grown = [], n
        batch.append(position)
        longest = grown
    if batch:
        yield batch
