"""BiLSTM-CRF: an LSTM over characters in both directions; the baseline of lexicon models.

Huang, Xu, Yu: "Bidirectional LSTM-CRF Models for Sequence Tagging", 2015; over Chinese characters as in Zhang, Yang:
"Chinese NER Using Lattice LSTM", ACL 2018, §3.1 (its character model, width and dropout as there).

    重 -> 庆 -> 人 -> 和 -> 药 -> 店        LSTM from the left
    重 <- 庆 <- 人 <- 和 <- 药 <- 店        LSTM from the right
        both states of a character, concatenated -> linear -> CRF

It reads no lexicon, so words, including the user's own, have no effect. Bigrams are off, as in the paper's plain
character model; `use_bigrams` turns them on ("char + bichar" in the paper).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig, odd_widths
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.embeddings import InputSizes
from cige.nn.recurrent import BiRecurrent


@dataclass(frozen=True, kw_only=True)
class BiLstmCrfConfig(ModelConfig):
    """Settings of the character LSTM; widths and probabilities are those of the Lattice LSTM paper."""

    use_bigrams: bool = False
    """Whether to read character bigrams in addition to characters."""
    lstm_width: int = 200
    """Width of the LSTM's output, half of it per direction."""
    n_layers: int = 1
    """LSTM layers."""
    output_dropout_prob: float = 0.5
    """Dropout before the tag scores."""

    def problems(self) -> list[str]:
        return odd_widths(lstm_width=self.lstm_width)


class BiLstmCrfEncoder(LatticeEncoder[BiLstmCrfConfig]):
    def __init__(self, *, config: BiLstmCrfConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features, words=False)
        self.lstm = BiRecurrent(in_width=self.char_width, out_width=config.lstm_width, n_layers=config.n_layers)
        self.out_width = config.lstm_width

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, lstm_width]."""
        return self.lstm(self.read_chars(batch), batch.n_chars)
