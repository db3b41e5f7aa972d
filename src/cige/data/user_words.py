"""Simulate user words in training with gold entities and random n-grams, so that a tagger learns to use them.

In prediction, user words are nodes of the lattice that share one vector (row USER). A tagger learns how reliable they
are from true and false nodes of this kind in training.

A user word may have a label, which is evidence like the word itself, so training uses correct labels, wrong labels and
no labels. All labels that the model does not know have the same id (one more than those of known labels). The model
learns to handle them on sentences that simulate an unknown type: one of the types in the sentence is chosen, its user
words have the unknown label, and their gold label is UNKNOWN_TYPE ("*"), which prediction replaces by the user's label.
Other names of that type keep their gold label, since a list of words of some type says nothing about names that it
does not contain. False words have the unknown label too, so that the label alone does not make a word an entity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cige.data.sentence import OPEN, Span
from cige.data.vocabulary import UNK, USER, EncodedLattice
from cige.lexicon.user_word import UNKNOWN_TYPE

# Of false user words; short ones are more likely.
NGRAM_LENGTHS, NGRAM_PROBS = ((2, 3, 4, 5, 6), (0.35, 0.25, 0.2, 0.1, 0.1))


@dataclass(frozen=True)
class UserWordRegime:
    """How training simulates user words; with all values 0, it does not.

    For the effect of the defaults with and without user words, see docs/archive/systems.md, "FLAT with user words".
    """

    sentence_prob: float = 0.33
    """Share of sentences with user words."""
    entity_prob: float = 0.7
    """Probability that a gold entity in such a sentence is a user word."""
    n_false: float = field(default=1.0, metadata={"min": 0})
    """Mean number (Poisson) of false user words in such a sentence, which are random n-grams."""
    unknown_prob: float = 0.05
    """Probability that the vector of a lexicon word is replaced by that of unknown words, in any sentence."""
    label_prob: float = 0.0
    """Probability that a user word, true or false, has a label; more than 0 needs `model.word_labels`."""
    wrong_label_prob: float = 0.0
    """Share of the labelled true words with a wrong label, which is another label that the model knows."""
    unknown_label_prob: float = 0.0
    """Probability that a sentence with user words simulates a type that the model does not know, so that it learns to
    tag names of such types; more than 0 needs `model.word_labels`."""


def simulate_user_words(
    lattice: EncodedLattice,
    spans: Sequence[Span],
    regime: UserWordRegime,
    rng: np.random.Generator,
    *,
    word_labels: Sequence[str] = (),
) -> tuple[EncodedLattice, Sequence[Span]]:
    """Add simulated user words to a lattice and make some of its words unknown.

    Args:
        spans: the gold entities; OPEN stretches are not entities, and discontinuous entities are not words.
        word_labels: the labels that the model knows, as in Vocabulary; entities with other labels (such as those of
            parent types) are user words without a label.

    Returns:
        A new lattice, and its gold entities: `spans` itself, or in a sentence that simulates an unknown type, a tuple
        in which some have the label UNKNOWN_TYPE.
    """
    words, counts, groups, labels = lattice.words, lattice.counts, lattice.groups, lattice.word_labels
    if regime.unknown_prob > 0:
        words = np.where((rng.random(len(words)) < regime.unknown_prob) & (words != USER), UNK, words)
    starts, ends = lattice.starts, lattice.ends
    if rng.random() < regime.sentence_prob:
        entities = [s for s in spans if s.label != OPEN and s.end - s.start >= 2 and not s.parts]
        added = [(s.start, s.end) for s in entities if rng.random() < regime.entity_prob]
        added += _false_words(len(lattice.chars), spans, int(rng.poisson(regime.n_false)), rng)
        if added:
            added = sorted(set(added))
            new_labels, spans = _labels(added, spans, regime, rng, word_labels)
            new_starts, new_ends = np.array(added, np.int64).T
            words = np.concatenate([words, np.full(len(new_starts), USER, np.int64)])
            starts, ends = np.concatenate([starts, new_starts]), np.concatenate([ends, new_ends])
            nothing = np.zeros(len(new_starts), np.int64)
            counts, groups = np.concatenate([counts, nothing]), np.concatenate([groups, nothing])
            labels = np.concatenate([labels, new_labels])
    changed = replace(lattice, words=words, starts=starts, ends=ends, counts=counts, groups=groups, word_labels=labels)
    return changed, spans


def _labels(
    added: Sequence[tuple[int, int]],
    spans: Sequence[Span],
    regime: UserWordRegime,
    rng: np.random.Generator,
    word_labels: Sequence[str],
) -> tuple[np.ndarray, Sequence[Span]]:
    """int64[len(added)]: ids of the labels of the user words `added`; and the gold entities for them."""
    ids = np.zeros(len(added), np.int64)
    if regime.label_prob <= 0 and regime.unknown_label_prob <= 0:  # nothing is drawn
        return ids, spans
    known = {label: k for k, label in enumerate(word_labels, start=1)}
    unknown = len(known) + 1
    label_at = {(s.start, s.end): s.label for s in spans}
    simulated_label = None  # the gold label that represents an unknown type in this sentence
    if rng.random() < regime.unknown_label_prob:
        listed = sorted({label_at[place] for place in added if label_at.get(place) in known})
        simulated_label = listed[int(rng.integers(len(listed)))] if listed else None
    for k, place in enumerate(added):
        label = label_at.get(place)
        if label is None:
            ids[k] = _label_of_false_word(regime, rng, len(known), simulates_unknown=simulated_label is not None)
        elif label == simulated_label:
            ids[k] = unknown
        elif label in known and rng.random() < regime.label_prob:
            ids[k] = known[label]
            if rng.random() < regime.wrong_label_prob and len(known) > 1:
                other = int(rng.integers(1, len(known)))
                ids[k] = other + (other >= known[label])
    if simulated_label is None:
        return ids, spans
    renamed = {place for place in added if label_at.get(place) == simulated_label}
    return ids, tuple(replace(s, label=UNKNOWN_TYPE) if (s.start, s.end) in renamed else s for s in spans)


def _label_of_false_word(
    regime: UserWordRegime, rng: np.random.Generator, n_known: int, *, simulates_unknown: bool
) -> int:
    """The id of a random known label, in half of the cases that of the simulated unknown label; 0 for no label."""
    if rng.random() >= regime.label_prob:
        return 0
    if simulates_unknown and rng.random() < 0.5:
        return n_known + 1
    return int(rng.integers(1, n_known + 1)) if n_known else 0


def _false_words(n_chars: int, spans: Sequence[Span], n_words: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Random n-grams of 2 to 6 characters that are not gold entities; short ones are more likely, as in real lists."""
    gold = {(s.start, s.end) for s in spans}
    words = []
    for _ in range(n_words):
        length = int(rng.choice(NGRAM_LENGTHS, p=NGRAM_PROBS))
        if length <= n_chars:
            start = int(rng.integers(0, n_chars - length + 1))
            if (start, start + length) not in gold:
                words.append((start, start + length))
    return words
