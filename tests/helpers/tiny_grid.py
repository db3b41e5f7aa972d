"""The tiny model with a pair grid instead of its CRF."""

from __future__ import annotations

from typing import Any

import tiny
import torch

from cige.entities.label_facts import LabelFacts
from cige.models.build import build_network
from cige.models.model import GridModel
from cige.models.pair_grid_config import PairGridConfig

HEAD = PairGridConfig(max_length=6, head_width=8)


def model(*, seed: int = 0, head: PairGridConfig = HEAD, **options: Any) -> GridModel:
    """An untrained model; about half of all spans have a score above 0."""
    base = tiny.model(seed=seed, **options)
    torch.manual_seed(seed)
    tagger = build_network(base.architecture, base.config, base.vocabulary, base.labels, base.widths, None, head)
    tagger.encoder.load_state_dict(base.tagger.encoder.state_dict())
    own = {name: value for name, value in vars(base).items() if name != "tagger"}
    return GridModel(**own | {"tagger": tagger.eval(), "label_facts": LabelFacts(nested=True), "pair_grid": head})
