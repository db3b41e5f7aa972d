"""How much attention each token of a lattice receives from one or several Lattice-BERTs (Figure 4 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

import numpy as np

from cige.errors import ModelError
from cige.folders.hub import model_folder
from cige.folders.manifest import kind_of
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.encoder.reading import N_SPECIAL
from cige.lattice_bert.encoder.token_batch import collate_tokens
from cige.lattice_bert.encoder.token_lattice import TokenLattice
from cige.lattice_bert.kinds import PRETRAINED
from cige.nn.contexts import evaluating

ENCODER_FOLDERS = ("encoder", "bert")  # in the folder of a model that was fine-tuned on a task, and of a tagger


@dataclass(frozen=True)
class AttendedTokens:
    """The attention of M models, by name, to the n lattice tokens of a text.

    Attributes:
        shares: float32[M, n], the share of a model's attention that each token receives, over all layers, heads and
            queries; together with the shares of [CLS] and [SEP], the shares of a model sum to 1.
    """

    lattice: TokenLattice
    names: tuple[str, ...]
    shares: np.ndarray

    @property
    def tokens(self) -> list[tuple[int, int, str]]:
        """(start, end, text[start:end]) of each token, with half-open offsets in code points."""
        return [(start, end, self.lattice.text[start:end]) for start, end in self.lattice.char_spans().tolist()]

    def to_dict(self) -> dict[str, object]:
        """All fields in a form that can be written as JSON."""
        tokens = [
            {"start": start, "end": end, "token": token, "share": dict(zip(self.names, shares, strict=True))}
            for (start, end, token), shares in zip(self.tokens, self.shares.T.tolist(), strict=True)
        ]
        return {"text": self.lattice.text, "tokens": tokens}


def attended_tokens(models: Mapping[str, PretrainedLatticeBert], text: str) -> AttendedTokens:
    """How much attention each token of a text receives in each model; raises a ModelError if the models have different
    vocabularies, the text has no pieces, or it has more pieces than one of the models has positions."""
    first, *others = models.values()
    if any(other.vocabulary.fingerprint != first.vocabulary.fingerprint for other in others):
        raise ModelError(f"{' and '.join(models)}: different vocabularies, so their tokens cannot be compared")
    lattice = first.tokenizer.tokenize(text)
    if not lattice.n_tokens:
        raise ModelError(f"{text[:20]!r}: no token in it; give a text with characters")
    room = min(model.config.max_positions for model in models.values()) - N_SPECIAL
    if lattice.n_pieces > room:
        raise ModelError(f"a text of {lattice.n_pieces:,} pieces; the model has positions for {room:,}; shorten it")
    batch = collate_tokens([first.tokenizer.encode(lattice)])
    shares = []
    for model in models.values():
        with evaluating(model.bert):
            received = model.bert.attention_received(batch.to(model.bert.pooler.weight.device))
        shares.append(received[0, 1:-1].cpu().numpy())
    return AttendedTokens(lattice, tuple(models), np.stack(shares))


def read_encoder(folder_or_hub_id: str | PathLike[str]) -> PretrainedLatticeBert:
    """Read a pre-trained Lattice-BERT, or that of a model fine-tuned from it; ModelError if there is none."""
    folder = model_folder(folder_or_hub_id)
    encoders = [folder / name for name in ENCODER_FOLDERS if kind_of(folder / name) == PRETRAINED]
    return PretrainedLatticeBert.from_pretrained(encoders[0] if encoders else folder)
