"""BERT-CRF: a BERT's characters straight to the tag scores and the CRF; what BERT + lexicon models are compared with.

Li, Yan, Qiu, Huang: "FLAT: Chinese NER Using Flat-Lattice Transformer", ACL 2020, Table 4 ("BERT+MLP+CRF").

    [CLS]  重  庆  人  和  药  店  [SEP]      BERT, tuned or as it is (nn/bert.py)
            |   |   |   |   |   |
           MLP, if it has hidden layers -> linear -> CRF

The paper says no more of the MLP; by default it is the tagger's linear layer alone, `hidden_widths` puts layers with
GELU under it, which start as PyTorch's do. It reads no lexicon and no vectors of its own: words, a user's own too, are
nothing to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig, input_vectors
from cige.nn.dropout import Dropout
from cige.nn.embeddings import InputSizes


@dataclass(frozen=True, kw_only=True)
class BertCrfConfig(ModelConfig):
    """BERT-CRF's own choices; `bert` names the BERT and is not optional here."""

    use_bigrams: bool = False
    """This model reads no bigrams."""
    bert_tuned: bool = True
    """Train the BERT too, as Table 4 of FLAT does; False leaves it as it is."""
    hidden_widths: tuple[int, ...] = ()
    """Widths of hidden layers between the BERT and the linear layer."""
    hidden_dropout_prob: float = 0.1
    """Dropout on what each hidden layer reads."""
    output_dropout_prob: float = 0.1
    """Dropout before the tag scores."""

    def problems(self) -> list[str]:
        found = []
        if self.bert is None:
            found.append("model.bert names no BERT, and this model is nothing without one; give a folder or a hub id")
        if self.use_bigrams:
            found.append("model.use_bigrams is true, but this model reads a BERT alone")
        if any(width < 1 for width in self.hidden_widths):
            found.append(f"model.hidden_widths is {list(self.hidden_widths)}, expected widths of at least 1")
        return found


class BertCrfEncoder(nn.Module):
    """Lattice batch -> character features; a LatticeEncoder (see models.tagger).

    Raises:
        ValueError: there are no features, so the config names no BERT.
    """

    def __init__(self, *, config: BertCrfConfig, sizes: InputSizes, features: nn.Module | None = None):
        super().__init__()
        if features is None:
            raise ValueError(config.problems()[0])
        self.embeddings = input_vectors(config, sizes, chars=False, words=False)
        self.features: nn.Module = features
        widths = [int(features.width), *config.hidden_widths]  # type: ignore[arg-type]
        layers: list[nn.Module] = []
        for in_width, out_width in pairwise(widths):
            layers += [Dropout(config.hidden_dropout_prob), nn.Linear(in_width, out_width), nn.GELU()]
        self.mlp = nn.Sequential(*layers)
        self.out_width = widths[-1]

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, out_width]."""
        out: Tensor = self.mlp(self.features(batch))
        return out

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and zeros float[B, T, W]: this model reads no words."""
        features = self(batch)
        return features, features.new_zeros(*features.shape[:2], batch.words.shape[1])
