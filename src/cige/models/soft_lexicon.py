"""SoftLexicon: the words of a character's four sets as part of its input, then a BiLSTM-CRF.

Ma, Peng, Zhang, Wei, Huang: "Simplify the Usage of Lexicon in Chinese NER", ACL 2020.

    花                      [vector; B; M; E; S] ->  LSTM  ->  linear -> CRF
    开   B {开公司} E {花开} [vector; B; M; E; S] -> <    >
    公   ...                                         both directions

§3.1  read_chars           a character's vector; its bigram's (`use_bigrams`) and a BERT's (`bert`) where chosen
§3.2  SoftLexicon          its word sets and their weighted vectors (nn.soft_lexicon, form "counts")
§3.3  BiRecurrent          sequence modelling; the paper's LSTM, which is its best
§3.4  CRF                  in models.tagger

As in the paper a word's count z is taken from a statistic data set; here that is the training text, where the released
code counts in development and test text too. `tune_words=False` is the released code's, where no gradient reaches word
vectors (by accident: they are declared trainable). The LSTM starts as PyTorch's does. Without words (`use_words=False`)
this is a BiLSTM-CRF.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig, char_width, input_vectors, read_chars
from cige.nn.embeddings import InputSizes
from cige.nn.recurrent import BiRecurrent
from cige.nn.soft_lexicon import SoftLexicon, Weighting, WordSets


@dataclass(frozen=True, kw_only=True)
class SoftLexiconConfig(ModelConfig):
    """SoftLexicon's own choices; widths and probabilities of the released code."""

    use_bigrams: bool = False
    """Read character bigrams beside characters ("bichar" of the paper)."""
    lstm_width: int = 600
    """Width of the LSTM's output, half of it a direction; 400 for Weibo and Resume."""
    n_layers: int = 1
    """LSTM layers."""
    output_dropout_prob: float = 0.5
    """Dropout before the tag scores."""
    use_words: bool = True
    """False leaves the word sets out: the word-free twin, a BiLSTM-CRF."""
    weighting: Weighting = "counts"
    """Weights in a set: the paper's 4 z / Z, or the smoothed ones of its first version and DCSAN."""
    smoothing: float = 1.0
    """b of the smoothed weights (see DcsanConfig)."""
    tune_words: bool = True
    """Train word vectors; False keeps all but the special ones (released code)."""

    def problems(self) -> list[str]:
        found = []
        if self.lstm_width % 2:
            found.append(f"model.lstm_width is {self.lstm_width}, expected an even number (half for each direction)")
        if self.smoothing < 0:
            found.append(f"model.smoothing is {self.smoothing}, expected 0 or more")
        return found


class SoftLexiconEncoder(nn.Module):
    """Lattice batch -> character features; a LatticeEncoder (see models.tagger)."""

    def __init__(self, *, config: SoftLexiconConfig, sizes: InputSizes, features: nn.Module | None = None):
        super().__init__()
        self.config = config
        self.embeddings = input_vectors(config, sizes, words=config.use_words, char_words=config.use_words)
        self.features = features
        in_width = char_width(self.embeddings, features)
        if config.use_words:
            self.soft_lexicon = SoftLexicon(
                word_width=self.embeddings.word_width,
                user_count=sizes.user_count,
                weighting=config.weighting,
                smoothing=config.smoothing,
                tuned=config.tune_words,
            )
            in_width += self.soft_lexicon.width
        self.lstm = BiRecurrent(in_width=in_width, out_width=config.lstm_width, n_layers=config.n_layers)
        self.out_width = config.lstm_width

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, lstm_width]."""
        return self._read(batch)[0]

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and each word's weight in the sets of each character, float[B, T, W].

        That is its share of the word part of a character's input; the character itself and NONE have the rest. What
        the LSTM carries on to other characters is not counted.
        """
        features, sets = self._read(batch)
        if sets is None:
            return features, features.new_zeros(*batch.chars.shape, batch.words.shape[1])
        return features, sets.shares

    def word_sets(self, batch: LatticeBatch) -> WordSets | None:
        """The BMES sets of every character, or None in a model without words."""
        return self.soft_lexicon.sets(batch) if self.config.use_words else None

    def _read(self, batch: LatticeBatch) -> tuple[Tensor, WordSets | None]:
        x, sets = read_chars(self.embeddings, self.features, batch), None
        if self.config.use_words:
            words, sets = self.soft_lexicon(batch, self.embeddings)
            x = torch.cat([x, words], -1)
        return self.lstm(x, batch.n_chars), sets
