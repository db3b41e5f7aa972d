"""User words in training: gold entities and random n-grams as user nodes, so that a tagger learns what they are worth.

At run time a user's own words enter the lattice as nodes that share one vector (row USER). A tagger hears them only
if training showed it such nodes, true ones and false ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cige.data.sentence import Span
from cige.data.vocabulary import UNK, USER, EncodedLattice

NGRAM_LENGTHS, NGRAM_PROBS = (
    (2, 3, 4, 5, 6),
    (0.35, 0.25, 0.2, 0.1, 0.1),
)  # of false user words: short ones are likelier


@dataclass(frozen=True)
class UserWordRegime:
    """How training simulates user words; all zero is plain training.

    What the defaults gain with user words and cost without is in docs/results.md, "User words".
    """

    sentence_prob: float = 0.33
    """Share of sentences that get user words at all."""
    entity_prob: float = 0.7
    """In such a sentence: probability that a gold entity is a user word."""
    n_false: float = field(default=1.0, metadata={"min": 0})
    """In such a sentence: mean number (Poisson) of random n-grams as false user words."""
    unknown_prob: float = 0.05
    """Probability that a lexicon word's vector is replaced by the unknown-word vector, in any sentence."""


def simulate_user_words(
    lattice: EncodedLattice, spans: Sequence[Span], regime: UserWordRegime, rng: np.random.Generator
) -> EncodedLattice:
    """Return `lattice` with simulated user nodes added and some words unknown; the given lattice is not changed."""
    words, counts, groups = lattice.words, lattice.counts, lattice.groups
    if regime.unknown_prob > 0:
        words = np.where((rng.random(len(words)) < regime.unknown_prob) & (words != USER), UNK, words)
    starts, ends = lattice.starts, lattice.ends
    if rng.random() < regime.sentence_prob:
        added = [(s.start, s.end) for s in spans if s.end - s.start >= 2 and rng.random() < regime.entity_prob]
        added += _false_words(len(lattice.chars), spans, int(rng.poisson(regime.n_false)), rng)
        if added:
            new_starts, new_ends = np.array(sorted(set(added)), np.int64).T
            words = np.concatenate([words, np.full(len(new_starts), USER, np.int64)])
            starts, ends = np.concatenate([starts, new_starts]), np.concatenate([ends, new_ends])
            nothing = np.zeros(len(new_starts), np.int64)
            counts, groups = np.concatenate([counts, nothing]), np.concatenate([groups, nothing])
    return replace(lattice, words=words, starts=starts, ends=ends, counts=counts, groups=groups)


def _false_words(n_chars: int, spans: Sequence[Span], n_words: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Random n-grams of 2 to 6 characters that are not gold entities; short ones are likelier, as in real lists."""
    gold = {(s.start, s.end) for s in spans}
    found = []
    for _ in range(n_words):
        length = int(rng.choice(NGRAM_LENGTHS, p=NGRAM_PROBS))
        if length <= n_chars:
            start = int(rng.integers(0, n_chars - length + 1))
            if (start, start + length) not in gold:
                found.append((start, start + length))
    return found
