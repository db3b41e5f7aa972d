"""GridModel: a LatticeModel whose head scores pairs of characters, so that its entities may be nested."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import ClassVar, cast

from cige.data.vocabulary import Vocabulary
from cige.folders.checked_settings import check_settings
from cige.folders.kinds import GRID_TAGGER
from cige.json_text import JsonObject
from cige.models.build import build_network
from cige.models.config import ModelConfig
from cige.models.model import LatticeModel
from cige.models.pair_grid_config import PairGridConfig
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
        if facts["tags"] != sorted(set(facts["labels"])):
            raise ValueError(f"{len(facts['tags'])} tags; those of a pair grid are its labels")
        widths = cast(tuple[int, int, int], tuple(facts["widths"]))
        head = _head(facts)
        return build_network(facts["architecture"], config, vocabulary, facts["tags"], widths, features, head)

    def _head_facts(self) -> JsonObject:
        return {"pair_grid": asdict(self.pair_grid)}

    @classmethod
    def _head_fields(cls, facts: JsonObject) -> JsonObject:
        return {"pair_grid": _head(facts)}


def _head(facts: JsonObject) -> PairGridConfig:
    config = PairGridConfig(**facts["pair_grid"])
    check_settings(config)
    if config.max_length is None or not 1 <= config.max_length <= 1 << 12:
        raise ValueError(f"pair_grid.max_length is {config.max_length}; expected 1 to 4096 characters")
    if problems := config.problems():
        raise ValueError(problems[0])
    return config
