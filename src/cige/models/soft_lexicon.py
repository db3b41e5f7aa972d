"""SoftLexicon: the words of a character's four sets as part of its input, then a BiLSTM-CRF.

Ma, Peng, Zhang, Wei, Huang: "Simplify the Usage of Lexicon in Chinese NER", ACL 2020.

    花                      [vector; B; M; E; S] ->  LSTM  ->  linear -> CRF
    开   B {开公司} E {花开} [vector; B; M; E; S] -> <    >
    公   ...                                         both directions

§3.1  read_chars           the vectors of a character, its bigram (`use_bigrams`) and a BERT (`bert`)
§3.2  SoftLexicon          its word sets and their weighted vectors (nn.soft_lexicon, form "counts")
§3.3  BiRecurrent          sequence modelling by an LSTM, the best of the paper's variants
§3.4  CRF                  in models.tagger

The count z of a word is that in the training text, whereas the released code also counts in development and test text.
`tune_words=False` is the behaviour of the released code, in which no gradient reaches word vectors (by accident: they
are declared trainable). The LSTM is initialised as in PyTorch. Without words (`use_words=False`), this model is a
BiLSTM-CRF.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cige.data.batch import LatticeBatch
from cige.models.encoder import LatticeEncoder
from cige.models.soft_lexicon_config import SoftLexiconConfig
from cige.nn.char_features import CharFeatures
from cige.nn.embeddings import InputSizes
from cige.nn.recurrent import BiRecurrent
from cige.nn.soft_lexicon import SoftLexicon, WordSets

__all__ = ["SoftLexiconConfig", "SoftLexiconEncoder"]


class SoftLexiconEncoder(LatticeEncoder[SoftLexiconConfig]):
    def __init__(self, *, config: SoftLexiconConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features, words=config.use_words, char_words=config.use_words)
        in_width = self.char_width
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

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and each word's weight in the sets of each character, float[B, T, W].

        This is its share of the word part of a character's input; the rest is that of the character itself and NONE.
        The information that the LSTM transfers to other characters is not counted.
        """
        features, sets = self.encode(batch)
        if sets is None:
            return self.without_words(features, batch)
        return features, sets.shares

    def word_sets(self, batch: LatticeBatch) -> WordSets | None:
        """The BMES sets of every character, or None in a model without words."""
        return self.soft_lexicon.sets(batch) if self.config.use_words else None

    def encode(self, batch: LatticeBatch) -> tuple[Tensor, WordSets | None]:
        """Character features float[B, T, lstm_width], and the word sets."""
        x, sets = self.read_chars(batch), None
        if self.config.use_words:
            words, sets = self.soft_lexicon(batch, self.embeddings)
            x = torch.cat([x, words], -1)
        return self.lstm(x, batch.n_chars), sets
