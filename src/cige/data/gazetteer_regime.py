"""Hide gazetteers in training, so that a tagger relies neither on the presence of a name in a list nor on its absence.

In prediction, a list may lack most names of a text, or be replaced by another one. A word that is hidden from its lists
is read as an ordinary word; if it is a word of the lattice only because a list has it, it is no node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cige.data.vocabulary import UNK, EncodedLattice


@dataclass(frozen=True)
class GazetteerRegime:
    """How often training hides gazetteers; with all values 0, it does not."""

    hide_word_prob: float = 0.0
    """Probability that a word is hidden from all its gazetteers."""
    hide_list_prob: float = 0.0
    """Probability, for each gazetteer and sentence, that the gazetteer is empty."""
    hide_all_prob: float = 0.0
    """Probability that all gazetteers are empty in a sentence."""


SHOWN = GazetteerRegime()


def hide_gazetteers(
    lattice: EncodedLattice, regime: GazetteerRegime, rng: np.random.Generator, *, n_gazetteers: int
) -> EncodedLattice:
    """The lattice without the gazetteers that `regime` hides; the lattice itself if nothing is hidden. The bits of the
    `n_gazetteers` lists in `lattice.groups` follow the first, which is the lexicon's."""
    if regime == SHOWN or not (lattice.groups > 1).any():
        return lattice
    groups = lattice.groups
    if rng.random() < regime.hide_all_prob:
        shown = np.full(len(groups), 1, np.int64)
    else:
        is_shown = rng.random(n_gazetteers) >= regime.hide_list_prob
        lists = 1 + (is_shown.astype(np.int64) << np.arange(1, n_gazetteers + 1)).sum()
        shown = np.where(rng.random(len(groups)) < regime.hide_word_prob, 1, lists)
    hidden = groups & shown
    # A word without a vector is a node only because a gazetteer lists it.
    is_node = (groups <= 1) | (hidden > 1) | (lattice.words != UNK)
    others = {name: getattr(lattice, name)[is_node] for name in ("words", "starts", "ends", "counts", "word_labels")}
    return replace(lattice, groups=hidden[is_node], **others)
