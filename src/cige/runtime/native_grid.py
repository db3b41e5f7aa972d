"""NativeGridModel: a model of nested entities for prediction without PyTorch.

It reads the folders of GridModel whose head scores spans. The encoder and the linear layer behind it are those of a
NativeModel, in C if the package was built with a compiler.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from cige.entities.label_facts import LabelFacts
from cige.folders.kinds import GRID_TAGGER
from cige.models.pair_grid_config import PairGridConfig
from cige.runtime import native
from cige.runtime.native_model import NativeModel
from cige.runtime.span_scores import SpanScores
from cige.runtime.tagger_folder import TaggerFolder


@dataclass
class NativeGridModel(NativeModel):
    """The counterpart of GridModel for prediction; its `tags` are the labels, and `crf` and `chain` are None.

    `emissions` returns float32[B, T, M, K], the score of the span [i, i + m + 1) and label k at [i, m, k], which
    `cige.tagging.pair_grid` decodes.

    Attributes:
        pair_grid: the settings of the head.
        head: computes the scores of spans from what the network returns.
    """

    pair_grid: PairGridConfig = field(kw_only=True)
    head: SpanScores = field(kw_only=True)
    kind: ClassVar[str] = GRID_TAGGER

    def _scores(self, rows: np.ndarray, n_chars: np.ndarray) -> np.ndarray:
        return self.head(rows, n_chars)

    @classmethod
    def _with_output(cls, read: TaggerFolder) -> TaggerFolder:
        """The layer that makes the vectors of starts and ends is the output layer of the network."""
        assert read.pair_grid is not None
        return replace(read, weights=read.weights | SpanScores.output_layer(read.pair_grid, read.weights))

    @classmethod
    def _of_head(cls, read: TaggerFolder, label_facts: LabelFacts, library: native.Library | None) -> dict[str, Any]:
        assert read.pair_grid is not None
        head = SpanScores(read.pair_grid, read.weights, len(read.facts["tags"]))
        return {"crf": None, "chain": None, "pair_grid": read.pair_grid, "head": head}
