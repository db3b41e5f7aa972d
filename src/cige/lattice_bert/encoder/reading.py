"""Read texts of any length with a Lattice-BERT: one vector per lattice token and per character."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from cige.data.padding import pad_rows
from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.encoder.token_batch import collate_tokens
from cige.lattice_bert.encoder.token_inputs import SPECIAL
from cige.lattice_bert.encoder.token_lattice import TokenLattice
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.nn.budget import batches_by_budget
from cige.nn.char_features import BetweenLayers, CharPlaces
from cige.text.windows import overlapping_windows

N_SPECIAL = 2  # [CLS] and [SEP]
MAX_TEXTS, MAX_PAIRS = 64, 2**21  # per forward pass; position scores take MAX_PAIRS floats per head


@dataclass(frozen=True)
class TextFeatures:
    """The vectors of one text of T code points and n lattice tokens.

    Attributes:
        lattice: its tokens; `lattice.char_spans()` are their half-open offsets in code points of the text.
        token_vectors: float[n, D].
        char_vectors: float[T, D], for each code point the vector of the word piece that covers it, or zeros if none
            does (white space, control characters).
    """

    lattice: TokenLattice
    token_vectors: Tensor
    char_vectors: Tensor

    @property
    def word_spans(self) -> np.ndarray:
        """int32[W, 2]: half-open offsets [start, end) of each word in code points, including overlapping words."""
        return self.lattice.char_spans()[~self.lattice.is_piece]

    @property
    def word_vectors(self) -> Tensor:
        """float[W, D], of each word."""
        return self.token_vectors[torch.from_numpy(~self.lattice.is_piece)]


def read_texts(
    bert: LatticeBert, tokenizer: LatticeTokenizer, texts: Sequence[str], between: BetweenLayers | None = None
) -> list[TextFeatures]:
    """Read texts; gradients flow to `bert` if they are enabled.

    A text with more pieces than the model has positions is read in windows that overlap by half; each token gets its
    vector from the window in whose middle it lies. A word may not be longer than half of the positions (ValueError).
    `between` changes hidden vectors; its sentences are `texts`, and tokens that are words have no character.
    """
    plan = _Plan(list(tokenizer.tokenize_all(texts)), tokenizer, max_pieces=bert.config.max_positions - N_SPECIAL)
    vectors = _read_windows(bert, plan, between)
    return [
        TextFeatures(lattice, vectors[places], _char_vectors(lattice, vectors[places]))
        for lattice, places in zip(plan.lattices, plan.places(), strict=True)
    ]


class _Plan:
    """The windows of whole texts, their inputs, and the numbers of the windows in each batch."""

    def __init__(self, lattices: list[TokenLattice], tokenizer: LatticeTokenizer, *, max_pieces: int):
        self.lattices = lattices
        self._windows = [
            (text, window)
            for text, lattice in enumerate(lattices)
            for window in overlapping_windows(lattice.n_pieces, max_pieces)
        ]
        self.inputs = [tokenizer.encode(lattices[text].part(w.start, w.end)) for text, w in self._windows]
        n_tokens = np.array([one.n_tokens for one in self.inputs], np.int64)
        order = n_tokens.argsort(kind="stable")  # similar lengths together, to reduce padding
        batches = batches_by_budget(n_tokens[order].tolist(), max_sentences=MAX_TEXTS, max_pairs=MAX_PAIRS)
        self.batches = [order[batch].tolist() for batch in batches]

    def char_places(self, numbers: list[int], is_core: np.ndarray) -> CharPlaces:
        """The characters of the tokens of some windows; is_core, bool[S]: which tokens of these give a vector."""
        inputs = [self.inputs[number] for number in numbers]
        chars = [np.where(one.starts == one.ends, one.char_starts, SPECIAL) for one in inputs]
        core = np.split(is_core, np.cumsum([one.n_tokens for one in inputs])[:-1])
        is_char = [own & (row != SPECIAL) for own, row in zip(core, chars, strict=True)]
        sentences = np.array([self._windows[number][0] for number in numbers], np.int64)
        padded = (sentences, pad_rows(chars, fill=SPECIAL), pad_rows(is_char).astype(bool))
        return CharPlaces(*map(torch.from_numpy, padded))

    def places(self) -> list[np.ndarray]:
        """int64[n] for each text: the index of each token's vector among those of all batches."""
        places = [np.full(lattice.n_tokens, -1, np.int64) for lattice in self.lattices]
        n_before = 0
        for number in (number for batch in self.batches for number in batch):
            text, w = self._windows[number]
            lattice = self.lattices[text]
            within = (lattice.starts >= w.start) & (lattice.ends <= w.end)
            rank = np.cumsum(within)  # from 1, since [CLS] is first
            middle = (lattice.starts + lattice.ends - 1) // 2
            in_core = within & (w.core_start <= middle) & (middle < w.core_end)
            places[text][in_core] = n_before + rank[in_core]
            n_before += self.inputs[number].n_tokens
        for lattice, of_text in zip(self.lattices, places, strict=True):
            if (of_text < 0).any():
                start, end = lattice.char_span(int(of_text.argmin()))
                raise ValueError(f"the word {lattice.text[start:end]!r} is too long for a model with so few positions")
        return places


def _read_windows(bert: LatticeBert, plan: _Plan, between: BetweenLayers | None) -> Tensor:
    """float[S, D]: the vectors of all tokens of all windows, batch after batch."""
    device = bert.pooler.weight.device
    parts = [torch.zeros(0, bert.config.width, device=device)]
    is_core = np.zeros(sum(one.n_tokens for one in plan.inputs), bool)
    for of_text in plan.places() if between is not None else ():
        is_core[of_text] = True
    n_read = 0
    for numbers in plan.batches:
        batch = collate_tokens([plan.inputs[number] for number in numbers]).to(device)
        change = None
        if between is not None:
            n_tokens = int(batch.n_tokens.sum())
            places = plan.char_places(numbers, is_core[n_read : n_read + n_tokens]).to(device)
            n_read += n_tokens
            change = between.after_layer, partial(between.change, places=places)
        parts.append(bert.encode(batch, change=change)[batch.mask].float())
    return torch.cat(parts)


def _char_vectors(lattice: TokenLattice, token_vectors: Tensor) -> Tensor:
    """float[T, D]; no two pieces cover one code point."""
    pieces, device = np.flatnonzero(lattice.is_piece), token_vectors.device
    lengths = lattice.piece_ends - lattice.piece_starts
    steps = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # 0, 1, .. within each piece
    chars = torch.from_numpy(np.repeat(lattice.piece_starts, lengths) + steps).to(device)
    covering = torch.from_numpy(np.repeat(pieces, lengths)).to(device)
    vectors = token_vectors.new_zeros(len(lattice.text), token_vectors.shape[1])
    return vectors.index_copy(0, chars, token_vectors[covering])
