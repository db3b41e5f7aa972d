"""How often a text uses each lexicon word, where a word inside a longer one does not count (soft lexicon's z)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cige.lattice.lattice import Lattice


def count_words(lattices: Iterable[Lattice], n_base: int) -> np.ndarray:
    """int32[n_base]: occurrences of each base word in some lattices that no longer matched word covers.

    Ma et al. 2020, §3.2: "the frequency of w is not increased if w is covered by another subsequence that matches the
    lexicon"; DCSAN's z(w) is the same. User words are neither counted nor cover anything. The released codes take the
    longest match first and remove the words within it from a list of strings, so that now and then the same word
    elsewhere in the sentence goes instead; here a word is covered where it stands.
    """
    counts = np.zeros(n_base, np.int32)
    for lattice in lattices:
        words = lattice.words[lattice.words[:, 2] < n_base]
        # By start, longer first: a word is covered if and only if one before it reaches at least as far.
        order = np.lexsort((-words[:, 1], words[:, 0]))
        words = words[order]
        reach = np.maximum.accumulate(words[:, 1]) if len(words) else words[:, 1]
        covered = np.zeros(len(words), bool)
        covered[1:] = words[1:, 1] <= reach[:-1]
        np.add.at(counts, words[~covered, 2], 1)
    return counts
