"""Features of a pre-trained Lattice-BERT: one vector per character, with the interface of `BertFeatures`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import Tensor

from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.encoder.reading import read_texts
from cige.nn.char_features import BetweenLayers, CharFeatures


class LatticeBertFeatures(CharFeatures):
    """Returns the last hidden vector of each character; the words are those of the Lattice-BERT's vocabulary.

    Without `tuned`, the encoder stays in evaluation mode and has no gradient. Its heads are ignored.
    """

    bert: LatticeBert

    def __init__(self, *, pretrained: PretrainedLatticeBert, tuned: bool):
        super().__init__()
        self.bert = pretrained.bert.requires_grad_(tuned)
        self.bert.pooler.requires_grad_(False)  # the pooled vector is not used here
        self.vocabulary, self.tokenizer, self.facts = pretrained.vocabulary, pretrained.tokenizer, pretrained.facts
        self.tuned = tuned
        self.width = self.bert.out_width
        self.n_layers = self.bert.config.n_layers if self.bert.adapter is None else 0
        self.train(self.training)

    @classmethod
    def load(cls, path_or_hub_id: Path | str, *, tuned: bool, local_only: bool = False) -> LatticeBertFeatures:
        """Read what PretrainedLatticeBert.save wrote, with the errors of PretrainedLatticeBert.from_pretrained."""
        options = {"local_files_only": True} if local_only else {}
        return cls(pretrained=PretrainedLatticeBert.from_pretrained(path_or_hub_id, **options), tuned=tuned)

    def save_pretrained(self, folder: Path) -> None:
        """Write a folder that `load` can read without a network connection."""
        PretrainedLatticeBert(network=self.bert, vocabulary=self.vocabulary, facts=self.facts).save(folder)

    def read(self, texts: Sequence[str], device: torch.device, between: BetweenLayers | None) -> Sequence[Tensor]:
        """See CharFeatures; zero on characters that no word piece covers."""
        with nullcontext() if self.tuned or between is not None else torch.no_grad():
            return [text.char_vectors for text in read_texts(self.bert, self.tokenizer, texts, between)]
