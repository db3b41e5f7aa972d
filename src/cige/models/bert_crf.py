"""BERT-CRF: BERT features of characters, tag scores and a CRF; the baseline of models with a BERT and a lexicon.

Li, Yan, Qiu, Huang: "FLAT: Chinese NER Using Flat-Lattice Transformer", ACL 2020, Table 4 ("BERT+MLP+CRF").

    [CLS]  重  庆  人  和  药  店  [SEP]      BERT, fine-tuned or fixed (nn/bert.py)
            |   |   |   |   |   |
           MLP, if it has hidden layers -> linear -> CRF

The paper says no more about the MLP. By default it is only the tagger's linear layer; `hidden_widths` adds layers with
GELU below it, initialised as in PyTorch. The model reads no lexicon and no other vectors but those of components
(`components`), so words, including the user's own, have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig, bert_problems
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.dropout import Dropout
from cige.nn.embeddings import InputSizes


@dataclass(frozen=True, kw_only=True)
class BertCrfConfig(ModelConfig):
    """BERT-CRF's settings; `bert`, the name of the BERT, is required."""

    use_bigrams: bool = False
    """This model reads no bigrams."""
    bert_tuned: bool = True
    """Whether to fine-tune the BERT, as in Table 4 of FLAT, or keep it fixed."""
    hidden_widths: tuple[int, ...] = ()
    """Widths of hidden layers between the BERT and the linear layer."""
    hidden_dropout_prob: float = 0.1
    """Dropout on the input of each hidden layer."""
    output_dropout_prob: float = 0.1
    """Dropout before the tag scores."""

    def problems(self) -> list[str]:
        problems = bert_problems(self, reads="a BERT")
        if any(width < 1 for width in self.hidden_widths):
            problems.append(f"model.hidden_widths is {list(self.hidden_widths)}, expected widths of at least 1")
        return problems


class BertCrfEncoder(LatticeEncoder[BertCrfConfig]):
    """Encodes a lattice batch to character features.

    Raises:
        ValueError: there are no features, so the config names no BERT.
    """

    features: CharFeatures

    def __init__(self, *, config: BertCrfConfig, sizes: InputSizes, features: CharFeatures | None = None):
        if features is None:
            raise ValueError(config.problems()[0])
        super().__init__(config, sizes, features, chars=False, words=False)
        widths = [features.width + self.components_width, *config.hidden_widths]
        layers: list[nn.Module] = []
        for in_width, out_width in pairwise(widths):
            layers += [Dropout(config.hidden_dropout_prob), nn.Linear(in_width, out_width), nn.GELU()]
        self.mlp = nn.Sequential(*layers)
        self.out_width = widths[-1]

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, out_width]."""
        out: Tensor = self.mlp(self.with_components(self.features(batch), batch))
        return out
