"""The architectures by name: the modules of their settings and encoders, and what they require of the vocabulary."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cige.errors import ModelError
from cige.models.config import ModelConfig

if TYPE_CHECKING:
    from cige.models.encoder import LatticeEncoder
    from cige.nn.char_features import CharFeatures
    from cige.nn.embeddings import InputSizes


@dataclass(frozen=True)
class Architecture:
    """A model that can be built.

    Attributes:
        module: its module, which is imported on first use.
        config, encoder: names of its ModelConfig and of its LatticeEncoder in that file. The constructor of the encoder
            has the arguments config, sizes (InputSizes) and features (CharFeatures or None).
        reads_counts: whether the model weights words by how often training text uses them.
    """

    module: str
    config: str
    encoder: str
    reads_counts: bool = False

    def config_class(self) -> type[ModelConfig]:
        return getattr(import_module(self.module), self.config)

    def make_encoder(
        self, config: ModelConfig, sizes: InputSizes, features: CharFeatures | None
    ) -> LatticeEncoder[Any]:
        make: type[LatticeEncoder[Any]] = getattr(import_module(self.module), self.encoder)
        return make(config=config, sizes=sizes, features=features)


ARCHITECTURES = {
    "bilstm_crf": Architecture("cige.models.bilstm_crf", "BiLstmCrfConfig", "BiLstmCrfEncoder"),
    "tener": Architecture("cige.models.tener", "TenerConfig", "TenerEncoder"),
    "bert_crf": Architecture("cige.models.bert_crf", "BertCrfConfig", "BertCrfEncoder"),
    "lebert": Architecture("cige.models.lebert", "LebertConfig", "LebertEncoder"),
    "lattice_lstm": Architecture("cige.models.lattice_lstm", "LatticeLstmConfig", "LatticeLstmEncoder"),
    "flat": Architecture("cige.models.flat", "FlatConfig", "FlatEncoder"),
    "nflat": Architecture("cige.models.nflat", "NflatConfig", "NflatEncoder"),
    "soft_lexicon": Architecture(
        "cige.models.soft_lexicon", "SoftLexiconConfig", "SoftLexiconEncoder", reads_counts=True
    ),
    "dcsan": Architecture("cige.models.dcsan", "DcsanConfig", "DcsanEncoder", reads_counts=True),
    "cgn": Architecture("cige.models.cgn", "CgnConfig", "CgnEncoder"),
    "lgn": Architecture("cige.models.lgn", "LgnConfig", "LgnEncoder"),
    "lr_cnn": Architecture("cige.models.lr_cnn", "LrCnnConfig", "LrCnnEncoder"),
    "multi_digraph": Architecture("cige.models.multi_digraph", "MultiDigraphConfig", "MultiDigraphEncoder"),
    "plt": Architecture("cige.models.plt", "PltConfig", "PltEncoder"),
}


def architecture(name: str) -> Architecture:
    """The architecture with this name.

    Raises:
        ModelError: there is none; the message contains the nearest known name.
    """
    if name not in ARCHITECTURES:
        near = difflib.get_close_matches(name, ARCHITECTURES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ModelError(f"no architecture {name!r}; known are {', '.join(sorted(ARCHITECTURES))}{hint}")
    return ARCHITECTURES[name]
