"""Batches that fit memory, counted in pairs of lattice nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def batches_by_budget(n_nodes: Sequence[int], *, max_sentences: int, max_pairs: int) -> Iterator[list[int]]:
    """Cut a sequence of sentences, in the order given, into batches that fit memory.

    A batch holds at most `max_sentences` sentences and costs at most `max_pairs` node pairs, counted as
    sentences x (longest sentence)^2, since scores are stored padded. A sentence over the budget is a batch alone.

    Yields:
        Lists of positions in `n_nodes`.
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
