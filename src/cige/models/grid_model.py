"""GridModel: a LatticeModel whose head scores pairs of characters, so that its entities may be nested."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import ClassVar

from cige.folders.kinds import GRID_TAGGER
from cige.json_text import JsonObject
from cige.models.model import LatticeModel
from cige.models.pair_grid_config import PairGridConfig, pair_grid_of
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
    def _head_of(cls, facts: JsonObject) -> PairGridConfig:
        return pair_grid_of(facts)

    def _head_facts(self) -> JsonObject:
        return {"pair_grid": asdict(self.pair_grid)}
