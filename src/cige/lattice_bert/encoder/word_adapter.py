"""WordAdapter: a BERT-our whose characters read words after one of its layers, in place of words at its input.

Liu, Fu, Zhang, Xiao: "Lexicon Enhanced Chinese Sequence Labeling Using BERT Adapter", ACL 2021 (LEBERT).

    Lattice-BERT                [CLS] 研 究 研究 生 研究生 [SEP]      every layer reads characters and words
    BERT-our with an adapter    [CLS] 研 究 生 [SEP]                  every layer reads characters,
                                       研究 研究生                    and after layer k, a character reads its words

Both read the same lattices of a JointVocabulary, so they are fine-tuned alike, and the two ways of reading words can be
compared. The words of the adapter have a table of their own, whose rows follow those of the pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cige.lattice_bert.encoder.token_batch import TokenBatch
from cige.nn.lexicon_adapter import LexiconAdapter, Residual
from cige.nn.word_choice import PlacedWords, WordChoice, choose_words


@dataclass(frozen=True, kw_only=True)
class WordAdapterConfig:
    """The settings of a WordAdapter."""

    n_words: int
    """Words; they are the last tokens of the joint vocabulary."""
    word_width: int
    """Width of the word vectors."""
    after_layer: int = 1
    """Number k of the layer after which characters read words."""
    max_words: int = 5
    """Number of words that a character reads at most."""
    word_choice: WordChoice = "longest"
    """Which words a character with more of them reads (see nn/word_choice.py)."""
    residual: Residual = "normalised"
    """How words are added to hidden vectors (see nn/lexicon_adapter.py)."""
    no_word: bool = False
    """Whether a character without words reads a trained vector."""
    dropout_prob: float = 0.1
    """Dropout on transformed words, and on the sum of a character and its words."""


@dataclass(frozen=True)
class SplitTokens:
    """The pieces of a batch of lattices, and the words over them.

    Attributes:
        pieces: the pieces alone; piece p of a text is at position p.
        ids: int64[B, W], the words, numbered from the first piece of the vocabulary.
        words: their places, in pieces.
    """

    pieces: TokenBatch
    ids: Tensor
    words: PlacedWords


class WordAdapter(nn.Module):
    """The table of words and the adapter that reads them; `width` is D of the encoder."""

    def __init__(self, config: WordAdapterConfig, *, width: int):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.n_words, config.word_width)
        self.adapter = LexiconAdapter(
            width=width,
            word_width=config.word_width,
            dropout_prob=config.dropout_prob,
            residual=config.residual,
            no_word=config.no_word,
        )

    def split(self, batch: TokenBatch) -> SplitTokens:
        """Separate the words of a batch from its pieces."""
        is_piece, is_word = batch.mask & (batch.starts == batch.ends), batch.starts < batch.ends
        n_pieces, n_words = is_piece.sum(1), is_word.sum(1)
        n = int(n_pieces.max())
        place = torch.where(is_piece, batch.starts, n)  # words and padding go to a column that is cut off

        def of_pieces(values: Tensor) -> Tensor:
            return values.new_zeros(len(batch), n + 1).scatter(1, place, values)[:, :n]

        at = of_pieces(batch.starts)
        pieces = TokenBatch(of_pieces(batch.ids), at, at, of_pieces(batch.types), n_pieces)
        order = (~is_word).long().argsort(dim=1, stable=True)[:, : max(1, int(n_words.max()))]
        words = PlacedWords(
            starts=batch.starts.gather(1, order),
            ends=batch.ends.gather(1, order) + 1,
            is_word=is_word.gather(1, order),
            is_user=torch.zeros_like(order, dtype=torch.bool),
            n_chars=n,
        )
        return SplitTokens(pieces, batch.ids.gather(1, order), words)

    def forward(self, hidden: Tensor, split: SplitTokens, *, n_pieces: int) -> Tensor:
        """float[B, P, D]: the hidden vectors of pieces float[B, P, D], changed by their words.

        Args:
            n_pieces: number of rows of the table of pieces, after which words are numbered.
        """
        rows = torch.where(split.words.is_word, split.ids - n_pieces, 0)
        values = self.adapter.values(self.words(rows))
        chosen = choose_words(split.words, max_words=self.config.max_words, choice=self.config.word_choice)
        changed: Tensor = self.adapter(hidden, values, chosen)[0]
        return changed
