"""Shards out of made-up lattices, for tests of what is cut out of them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cige.lattice_bert.pretraining.shards import Shard

Line = tuple[int, list[tuple[int, int]]]  # pieces, and words over them as (start, length)
COMMA = 7


def shard_of(documents: list[list[Line]], commas: set[int] = frozenset()) -> Shard:
    """A shard in which piece k has id 1000 + k, or COMMA, and a word over [s, e) has id 10**6 + 10**3 * s + e."""
    lines = [line for document in documents for line in document]
    line_pieces = np.cumsum([0, *(n for n, _ in lines)])
    tokens: list[tuple[int, int]] = []
    line_tokens = [0]
    for first, (n, words) in zip(line_pieces.tolist(), lines, strict=False):
        spans = {(k, 1) for k in range(n)} | {(s, size) for s, size in words if s + size <= n}
        tokens += sorted(((first + s, size) for s, size in spans), key=lambda span: (sum(span), span[1]))
        line_tokens.append(len(tokens))
    starts, lengths = np.array(tokens).T
    ids = np.where(lengths == 1, 1000 + starts, 10**6 + 10**3 * starts + starts + lengths)
    ids[(lengths == 1) & np.isin(starts, list(commas))] = COMMA
    return Shard(
        ids=ids.astype(np.int32),
        starts=starts.astype(np.int32),
        lengths=lengths.astype(np.uint16),
        line_tokens=np.array(line_tokens, np.int64),
        line_pieces=line_pieces.astype(np.int64),
        document_lines=np.cumsum([0, *map(len, documents)]).astype(np.int64),
        word_starts=np.arange(line_pieces[-1]) % 3 == 0,
    )


def plain(*documents: list[int]) -> Shard:
    """Lines of so many pieces without words."""
    return shard_of([[(n, []) for n in document] for document in documents])


def tokens_within(shard: Shard, start: int, end: int) -> list[tuple[int, int, int]]:
    """(id, start, length) of every token that lies wholly within some pieces, one by one."""
    found = zip(shard.ids.tolist(), shard.starts.tolist(), shard.lengths.tolist(), strict=True)
    return [token for token in found if start <= token[1] and token[1] + token[2] <= end]


_words = st.lists(st.tuples(st.integers(0, 15), st.integers(2, 6)), max_size=8)
_lines = st.tuples(st.integers(1, 20), _words)
corpora = st.lists(st.lists(_lines, min_size=1, max_size=8), min_size=1, max_size=6)
