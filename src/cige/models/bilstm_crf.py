"""BiLSTM-CRF: characters read from the left and from the right; what lexicon models are compared with.

Huang, Xu, Yu: "Bidirectional LSTM-CRF Models for Sequence Tagging", 2015; over Chinese characters as in Zhang, Yang:
"Chinese NER Using Lattice LSTM", ACL 2018, §3.1 (its character model, width and dropout as there).

    重 -> 庆 -> 人 -> 和 -> 药 -> 店        LSTM from the left
    重 <- 庆 <- 人 <- 和 <- 药 <- 店        LSTM from the right
        both states of a character side by side -> linear -> CRF

It reads no lexicon: words, a user's own too, are nothing to it. Bigrams are off, as in the paper's plain character
model; `use_bigrams` turns them on ("char + bichar" there).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig, char_width, input_vectors, read_chars
from cige.nn.embeddings import InputSizes
from cige.nn.recurrent import BiRecurrent


@dataclass(frozen=True, kw_only=True)
class BiLstmCrfConfig(ModelConfig):
    """A character LSTM's own choices; widths and probabilities of the Lattice LSTM paper."""

    use_bigrams: bool = False
    """Read character bigrams beside characters."""
    lstm_width: int = 200
    """Width of the LSTM's output, half of it a direction."""
    n_layers: int = 1
    """LSTM layers."""
    output_dropout_prob: float = 0.5
    """Dropout before the tag scores."""

    def problems(self) -> list[str]:
        if self.lstm_width % 2:
            return [f"model.lstm_width is {self.lstm_width}, expected an even number (half for each direction)"]
        return []


class BiLstmCrfEncoder(nn.Module):
    """Lattice batch -> character features; a LatticeEncoder (see models.tagger)."""

    def __init__(self, *, config: BiLstmCrfConfig, sizes: InputSizes, features: nn.Module | None = None):
        super().__init__()
        self.embeddings = input_vectors(config, sizes, words=False)
        self.features = features
        self.lstm = BiRecurrent(
            in_width=char_width(self.embeddings, features), out_width=config.lstm_width, n_layers=config.n_layers
        )
        self.out_width = config.lstm_width

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, lstm_width]."""
        return self.lstm(read_chars(self.embeddings, self.features, batch), batch.n_chars)

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and zeros float[B, T, W]: this model reads no words."""
        features = self(batch)
        return features, features.new_zeros(*features.shape[:2], batch.words.shape[1])
