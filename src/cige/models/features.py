"""Load the pre-trained encoder whose character vectors a tagger reads."""

from __future__ import annotations

from pathlib import Path

from cige.folders.kinds import find_kind
from cige.folders.manifest import kind_of
from cige.nn.bert import BertFeatures
from cige.nn.char_features import CharFeatures


def load_features(path_or_hub_id: Path | str, *, tuned: bool, local_only: bool = False) -> CharFeatures:
    """The features that a recipe names under `bert:`: a folder of cige, such as a Lattice-BERT, or any BERT.

    Raises:
        ModelError: there is no such model, or it is incomplete.
    """
    path = Path(path_or_hub_id)
    kind = find_kind(kind_of(path)) if path.is_dir() else None
    load = BertFeatures.load if kind is None or kind.load_features is None else kind.load_features
    features: CharFeatures = load(path_or_hub_id, tuned=tuned, local_only=local_only)
    return features
