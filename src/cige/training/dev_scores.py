"""Development scores during training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from cige.data.batch import collate
from cige.data.sentence import Sentence, Span
from cige.data.vocabulary import EncodedLattice, Vocabulary
from cige.entities.scores import Report, score
from cige.lattice.lattice import Lattice
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.models.tagger import Tagger
from cige.nn.budget import batches_by_budget
from cige.nn.contexts import evaluating

MAX_SENTENCES, MAX_PAIRS = 32, 1_000_000  # per batch; the second applies if the recipe sets no limit


class EvaluationSet:
    """Encoded sentences with their gold spans, in batches of similar length.

    Args:
        comparable: converts gold or predicted spans to those that are compared; None compares all spans unchanged.
    """

    def __init__(
        self,
        sentences: Sequence[Sentence],
        lattices: Sequence[Lattice],
        *,
        vocabulary: Vocabulary,
        scheme: str,
        max_pairs: int | None,
        comparable: Callable[[Sequence[Span]], Sequence[Span]] | None = None,
    ):
        encoded = [vocabulary.encode(lattice) for lattice in lattices]
        n_nodes = np.array([x.n_nodes for x in encoded])
        order = np.argsort(n_nodes, kind="stable")
        cuts = batches_by_budget(n_nodes[order].tolist(), max_sentences=MAX_SENTENCES, max_pairs=max_pairs or MAX_PAIRS)
        self._encoded: list[EncodedLattice] = encoded
        self._batches = [order[cut].tolist() for cut in cuts]
        self._comparable = comparable or (lambda spans: spans)
        self._gold = [self._comparable(sentence.spans) for sentence in sentences]
        self._scheme = scheme

    def score(self, tagger: Tagger) -> Report:
        """Strict scores of the best tag sequences; the training or evaluation mode of the tagger does not change."""
        device = tagger.device
        predicted: list[list[Span]] = [[] for _ in self._gold]
        with torch.no_grad(), evaluating(tagger):
            for rows in self._batches:
                batch = collate([self._encoded[row] for row in rows]).to(device)
                for row, spans in zip(rows, tagger.best_spans(batch, self._scheme), strict=True):
                    known = [span for span in spans if span.label != UNKNOWN_TYPE]  # no user word has its label
                    predicted[row] = list(self._comparable(known))
        return score(self._gold, predicted)
