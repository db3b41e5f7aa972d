"""TunedNER: find entities, with offsets and scores, with a Lattice-BERT that was fine-tuned on a labelling task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from os import PathLike
from typing import Any

import numpy as np

from cige.data.sentence import Sentence
from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.lattice_bert.tasks.tagging import TaggingHead, piece_chain
from cige.lattice_bert.tasks.tuned import TunedModel
from cige.tagging.edges import open_part
from cige.tagging.finder import EntityFinder
from cige.tagging.selection import Selection
from cige.text.closed import closed_stretches

READ_AHEAD = 16  # number of batches that `pipe` reads ahead, to group texts of similar length


class TunedNER(EntityFinder):
    """Finds entities in texts of any length, with the interface of `cige.NER`.

    A text that is too long for the model is read in windows, and decoded as a whole. Raises a ModelError if the model
    was fine-tuned on another kind of task.
    """

    def __init__(self, model: TunedModel):
        head = model.network.head
        if not isinstance(head, TaggingHead):
            raise ModelError(
                f"this model was fine-tuned for {model.task} ({model.kind_name}), so it finds no entities; expected "
                "one for entities or word segmentation. `cige lattice-bert finetune predict` answers the examples of "
                "its task, and in Python TunedModel.from_pretrained reads it"
            )
        self.model, self._head = model, head

    @classmethod
    def from_pretrained(cls, folder_or_hub_id: str | PathLike[str], *, device: str = "cpu") -> TunedNER:
        """Read what `TunedModel.save` wrote; raises the same errors as `TunedModel.from_pretrained`, and a ModelError
        if the model was fine-tuned on another kind of task."""
        model = TunedModel.from_pretrained(folder_or_hub_id, device=device)
        try:
            return cls(model)
        except ModelError as reason:
            raise ModelError(f"{folder_or_hub_id}: {reason}") from None

    @property
    def labels(self) -> list[str]:
        """The entity types of the model."""
        return list(self._head.labels)

    @property
    def label_facts(self) -> LabelFacts:
        return LabelFacts()

    @property
    def facts(self) -> dict[str, object]:
        """Facts that were saved with the model: its task, seed and scores."""
        return self.model.facts

    def _stream(self, texts: Iterable[str], batch_size: int, selection: Selection) -> Iterator[list[Entity]]:
        n_at_once, left = 1 if batch_size == 1 else batch_size * READ_AHEAD, iter(texts)
        while block := list(islice(left, n_at_once)):
            for found in self._read(block):
                yield [e for e in found if e.label in selection.reported and e.score >= selection.min_score]

    def _read(self, texts: Sequence[str]) -> list[list[Entity]]:
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"given {type(text).__name__}; expected str")
        sentences = [Sentence(text) for text in texts]
        return [self._entities(text, *read) for text, read in zip(texts, self.model.read(sentences), strict=True)]

    def _entities(self, text: str, items: Sequence[Any], outputs: Sequence[np.ndarray]) -> list[Entity]:
        chain = piece_chain(items, outputs)
        if not chain.n_pieces:
            return []
        crf = self._head.scores_of_tags()
        path = crf.decode(chain.emissions[None], [chain.n_pieces])[0]
        spans = self._head.piece_spans(path)
        if not spans:
            return []
        marginals = crf.marginals(chain.emissions[None], [chain.n_pieces])
        closed = closed_stretches(text)
        entities = []
        for span in spans:
            in_text = chain.in_text(span)
            if part := open_part(text, closed, in_text.start, in_text.end):
                score = marginals.probability(0, span.start, path[span.start : span.end])
                entities.append(Entity(*part, in_text.label, text[slice(*part)], score))
        return entities
