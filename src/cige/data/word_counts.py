"""Count the lexicon words in texts, without words that are part of longer ones (z of the soft lexicon)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cige.lattice.lattice import Lattice


def count_words(lattices: Iterable[Lattice], n_base: int) -> np.ndarray:
    """int32[n_base]: the number of occurrences of each base word that are not covered by a longer matched word.

    Ma et al. 2020, §3.2: "the frequency of w is not increased if w is covered by another subsequence that matches the
    lexicon"; DCSAN's z(w) is the same. User words are not counted and do not cover other words. The released codes take
    the longest match first and remove the words within it from a list of strings, so that they sometimes remove another
    occurrence of the same word; here, each occurrence is handled separately.
    """
    counts = np.zeros(n_base, np.int32)
    for lattice in lattices:
        words = lattice.words[lattice.words[:, 2] < n_base]
        # Sorted by start, longer words first: a word is covered if and only if a previous one ends at or after its end.
        order = np.lexsort((-words[:, 1], words[:, 0]))
        words = words[order]
        reach = np.maximum.accumulate(words[:, 1]) if len(words) else words[:, 1]
        covered = np.zeros(len(words), bool)
        covered[1:] = words[1:, 1] <= reach[:-1]
        np.add.at(counts, words[~covered, 2], 1)
    return counts
