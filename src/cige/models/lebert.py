"""LEBERT: a BERT that reads words between two of its layers, by a lexicon adapter; then tag scores and a CRF.

Liu, Fu, Zhang, Xiao: "Lexicon Enhanced Chinese Sequence Labeling Using BERT Adapter", ACL 2021.

    [CLS]  重  庆  人  和  药  店  [SEP]      layers 1 to k of the BERT
            |   |   |   |   |   |
           h + its words: 人 {人和药店}       the adapter, which attends from h to at most five words
            |   |   |   |   |   |
    [CLS]  .   .   .   .   .   .   [SEP]      layers k + 1 and higher
            |   |   |   |   |   |
             linear -> CRF

§3.1  choose_words         the words of a character: those that contain it, at most M (nn.word_choice)
§3.2  LexiconAdapter       v = W2 tanh(W1 e), a = softmax(h Wa v), LayerNorm(h + sum of a v) (nn.lexicon_adapter)
§3.3  CharFeatures         calls the adapter after layer k of any BERT, or of a Lattice-BERT or BERT-our
§3.4  CRF                  in models.tagger; [CLS] and [SEP] have no tags, whereas those of the released code are O

The words of the user are words like any other: all of them share one vector, which the adapter transforms and attends
to. With `word_choice="longest"`, the default, they come first, so up to M of them are read wherever they are; the rule
of the released code, "left", prefers words that begin early and are short, and may leave out a user's word.

A character without words reads none of them (`no_word="nothing"`): its sum is 0. In the paper, it reads the trained
vector of padding (`no_word="vector"`), as [CLS] and [SEP] do.

Further deviations: dropout on v is drawn for a word and not for each of its characters. Word vectors are those of the
other models, and only the rows of words in training text are trained; those of the released code are 200 wide, and its
vocabulary has the words of dev and test too. The released code means to train the adapter at one rate and BERT at
another, and by mistake exchanges them for Wa and for BERT's token table. Long texts are read in windows, and never cut.
`residual="plain"` is ours. Without words (`use_words=False`) the model is BERT-CRF.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from cige.data.batch import LatticeBatch
from cige.data.vocabulary import USER
from cige.errors import ModelError
from cige.models.config import ModelConfig, bert_problems
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import BetweenLayers, CharFeatures, CharPlaces
from cige.nn.embeddings import InputSizes
from cige.nn.lexicon_adapter import LexiconAdapter, Residual
from cige.nn.word_choice import PlacedWords, WordChoice, choose_words
from cige.recipes.ranges import within


@dataclass(frozen=True, kw_only=True)
class LebertConfig(ModelConfig):
    """LEBERT's settings; `bert`, the name of the BERT, is required."""

    use_bigrams: bool = False
    """This model reads no bigrams."""
    bert_tuned: bool = True
    """Whether to fine-tune the BERT, as in the paper, or keep it fixed and train only the adapter."""
    use_words: bool = True
    """False leaves out the adapter: the same model without words, a BERT-CRF."""
    after_layer: int = within(1, min=1)
    """Number k of the layer of the BERT after which characters read words."""
    max_words: int = within(5, min=1)
    """Number M of words that a character reads at most."""
    word_choice: WordChoice = "longest"
    """Which words a character with more of them reads: the user's, then the longest ones; or "left", the released
    code's rule (see nn/word_choice.py)."""
    no_word: Literal["nothing", "vector"] = "nothing"
    """What a character without words reads; "vector" is a trained vector (the paper)."""
    residual: Residual = "normalised"
    """Whether the sum of a character and its words is normalised (the paper), or not, with an adapter that adds nothing
    before it is trained."""
    adapter_dropout_prob: float = 0.1
    """Dropout on transformed words and on the sum of a character and its words."""
    word_dropout_prob: float = 0.0
    """Dropout on word vectors."""
    output_dropout_prob: float = 0.5
    """Dropout before the tag scores."""

    def problems(self) -> list[str]:
        return bert_problems(self, reads="a BERT and words")


RELEASED: dict[str, Any] = {"word_choice": "left", "no_word": "vector"}
"""Settings of the released code."""


class LebertEncoder(LatticeEncoder[LebertConfig]):
    """Encodes a lattice batch to character features.

    Raises:
        ValueError: there are no features, so the config names no BERT.
        ModelError: the BERT has no layer with the number `after_layer`, or no layers between which words can be read.
    """

    features: CharFeatures

    def __init__(self, *, config: LebertConfig, sizes: InputSizes, features: CharFeatures | None = None):
        if features is None:
            raise ValueError(config.problems()[0])
        super().__init__(config, sizes, features, chars=False, words=config.use_words)
        self.adapter: LexiconAdapter | None = None
        if config.use_words:
            if not features.n_layers:
                raise ModelError(
                    f"model.bert is {config.bert}, between whose layers no words can be read; expected a BERT with a "
                    "list of layers, or a Lattice-BERT or BERT-our without an adapter of its own"
                )
            if config.after_layer > features.n_layers:
                raise ModelError(
                    f"model.after_layer is {config.after_layer}, but {config.bert} has {features.n_layers} layers; "
                    f"expected from 1 to {features.n_layers}"
                )
            self.adapter = LexiconAdapter(
                width=features.width,
                word_width=self.embeddings.word_width,
                dropout_prob=config.adapter_dropout_prob,
                residual=config.residual,
                no_word=config.no_word == "vector",
            )
        self.out_width = features.width + self.components_width

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and the attention a of each character to words, float[B, T, W].

        This is the share of a word in what the adapter adds to a character. The information that higher layers of the
        BERT transfer to other characters is not counted. At a piece of several characters, only the first one has
        words.
        """
        features, shares = self.encode(batch)
        return self.without_words(features, batch) if shares is None else (features, shares)

    def encode(self, batch: LatticeBatch) -> tuple[Tensor, Tensor | None]:
        """The last hidden vectors of the BERT, then those of components if it reads these; and the attention to words,
        or None in a model without words."""
        adapter = self.adapter
        if adapter is None:
            return self.with_components(self.features(batch), batch), None
        values = adapter.values(self.embeddings.words(batch))  # [B, K, D]
        is_user, n_chars = batch.words == USER, batch.chars.shape[1]
        words = PlacedWords(batch.word_starts, batch.word_ends, batch.word_mask, is_user, n_chars)
        chosen = choose_words(words, max_words=self.config.max_words, choice=self.config.word_choice)  # [B, T, W]
        shares = values.new_zeros(chosen.shape, dtype=torch.float32)

        def change(hidden: Tensor, places: CharPlaces) -> Tensor:
            sentence, is_char = places.sentences[:, None], places.chars >= 0  # [R, 1], [R, L]
            allowed = chosen[sentence, places.chars.clamp(min=0)] & is_char[:, :, None]  # [R, L, W]
            changed, probabilities = adapter(hidden, values[places.sentences], allowed)
            core = places.core
            shares[sentence.expand_as(core)[core], places.chars[core]] = probabilities[core].to(shares)
            return changed

        features = self.features(batch, BetweenLayers(self.config.after_layer, change))
        return self.with_components(features, batch), shares
