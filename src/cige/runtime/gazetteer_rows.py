"""The vectors of gazetteers in the runtimes: rows of the table of labels of words, one for each set of gazetteers.

A word of the lexicon has no label, and a user word is in no gazetteer, so a word needs one row only. All vectors of a
set are added once, when a model is loaded, and reading a lattice costs the same as without gazetteers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cige.data.vocabulary import Vocabulary

LABELS, GAZETTEERS = "encoder.word_labels.weight", "encoder.gazetteers.weight"


def with_gazetteer_rows(weights: Mapping[str, np.ndarray], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """The weights of a FLAT, whose table of labels has a row for each set of gazetteers after those of the labels.

    The rows are those of `Vocabulary.label_and_set_ids`. Weights without gazetteers are returned unchanged.
    """
    if GAZETTEERS not in weights:
        return dict(weights)
    vectors = weights[GAZETTEERS].astype(np.float32)  # [D, G]
    labels = weights.get(LABELS)
    if labels is None:
        labels = np.zeros((len(vocabulary.word_labels) + 2, len(vectors)), np.float32)
    of_sets = vocabulary.gazetteer_sets[1:].astype(np.float32) @ vectors.T  # [C - 1, D]
    return {**weights, LABELS: np.concatenate([labels, of_sets])}
