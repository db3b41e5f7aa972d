"""GridModel: a LatticeModel whose head scores pairs of characters, so that its entities may be nested."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import ClassVar, cast

from cige.data.vocabulary import Vocabulary
from cige.folders.kinds import GRID_TAGGER
from cige.json_text import JsonObject
from cige.models.build import build_network
from cige.models.config import ModelConfig
from cige.models.model import LatticeModel
from cige.models.pair_grid_config import PairGridConfig, pair_grid_of
from cige.models.tagger import Tagger
from cige.nn.char_features import CharFeatures
from cige.nn.crf_numpy import NumpyCRF


@dataclass
class GridModel(LatticeModel):
    """Converts texts to scores of spans; `tagger` is a GridTagger, whose `tags` are the labels.

    `emissions` returns float32[B, T, M, K], the score of the span [i, i + m + 1) and label k at [i, m, k], which
    `cige.tagging.pair_grid` decodes.

    Attributes:
        pair_grid: the settings of the head.
    """

    pair_grid: PairGridConfig = field(default_factory=PairGridConfig)
    kind: ClassVar[str] = GRID_TAGGER

    @property
    def crf(self) -> NumpyCRF:
        raise AttributeError("a model with a pair grid has no CRF")

    @classmethod
    def _network(
        cls, facts: JsonObject, config: ModelConfig, vocabulary: Vocabulary, features: CharFeatures | None
    ) -> Tagger:
        head = pair_grid_of(facts)
        widths = cast(tuple[int, int, int], tuple(facts["widths"]))
        return build_network(facts["architecture"], config, vocabulary, facts["tags"], widths, features, head)

    def _head_facts(self) -> JsonObject:
        return {"pair_grid": asdict(self.pair_grid)}

    @classmethod
    def _head_fields(cls, facts: JsonObject) -> JsonObject:
        return {"pair_grid": pair_grid_of(facts)}
