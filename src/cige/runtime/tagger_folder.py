"""TaggerFolder: read a folder of `cige train` without PyTorch: settings, mapped weights, vocabulary and lexicon."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

from cige.data.model_words import VOCABULARY, load_words, must_fit_manifest
from cige.data.vocabulary import Vocabulary
from cige.errors import ModelError
from cige.folders.hub import is_bundled
from cige.folders.kinds import TAGGER
from cige.folders.manifest import checking_contents, read_manifest
from cige.folders.mapped_arrays import arrays_in, map_file
from cige.json_text import JsonObject
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import NamesList
from cige.models.config import config_from_json
from cige.models.pair_grid_config import PairGridConfig, head_of_manifest
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime.expected_arrays import CRF_MASKS, RuntimeConfig, check_weights

VERSION = 1  # version of the folder format, as in models.model
WEIGHTS = "model.safetensors"
CONFIGS = {
    "flat": ("cige.models.flat_config", "FlatConfig"),
    "soft_lexicon": ("cige.models.soft_lexicon_config", "SoftLexiconConfig"),
}
"""The architectures that the runtime supports, and the modules of their settings."""


def is_readable(folder: Path, kind: str = TAGGER) -> bool:
    """Whether the runtime supports the model in this folder of a tagger, or of a model of nested entities.

    Raises:
        ModelError: the folder is damaged or is of another kind.
    """
    return _is_readable(_facts(folder, kind))


def _is_readable(facts: JsonObject) -> bool:
    config, architecture = facts.get("config"), facts.get("architecture")
    is_known = isinstance(architecture, str) and architecture in CONFIGS
    return is_known and not _scores_relations(facts) and isinstance(config, dict) and config.get("bert") is None


def _scores_relations(facts: JsonObject) -> bool:
    head = facts.get("pair_grid")
    return isinstance(head, dict) and head.get("scores") == "relations"


@dataclass(frozen=True)
class TaggerFolder:
    """The content of a tagger folder.

    Attributes:
        config: the configuration of the network.
        weights_file: the mapped file of all arrays; it remains valid if the file is replaced later.
        weights: its arrays by name, read-only; float32 except for the rows of tables.
        crf: the CRF that scores tag sequences; None in a model of nested entities.
        facts: the manifest.
        pair_grid: the settings of the head of a model of nested entities, or None.
    """

    config: RuntimeConfig
    weights_file: mmap.mmap
    weights: dict[str, np.ndarray]
    vocabulary: Vocabulary
    lexicon: Lexicon
    crf: NumpyCRF | None
    facts: JsonObject
    folder: Path
    pair_grid: PairGridConfig | None = None


@contextmanager
def opened(folder: Path | str, names: NamesList | None = None, kind: str = TAGGER) -> Iterator[TaggerFolder]:
    """Context manager: read a folder in the body; on exit, its files have been compared with their checksums.

    `names` is a list of names instead of the model's own.

    For the bundled model, only the sizes are compared, since its files were checked when the package was installed, and
    checksums would take a fifth of the time to the first prediction. `cige doctor` compares them.

    Raises:
        ModelError: a file is missing, truncated, changed or not of a model, the lexicon is not that of the model, or
            the runtime does not support the architecture.
    """
    folder = Path(folder)
    facts = _facts(folder, kind)
    with nullcontext() if is_bundled(folder) else checking_contents(folder, facts, error=ModelError):
        yield _read(folder, facts, names)


def _read(folder: Path, facts: JsonObject, names: NamesList | None) -> TaggerFolder:
    """Read a folder with the manifest `facts` after checking the sizes of its files."""
    if not isinstance(facts.get("config"), dict):
        raise ModelError(f"{folder}: its manifest has no settings of a network; copy or save it again")
    if not _is_readable(facts):
        raise ModelError(
            f"{folder}: a model of architecture {str(facts.get('architecture'))[:40]!r}"
            f"{' with BERT features' if facts['config'].get('bert') else ''}"
            f"{' whose head scores relations' if _scores_relations(facts) else ''} needs PyTorch; "
            'pip install "cige[train]"'
        )
    unlisted = [name for name in (WEIGHTS, VOCABULARY) if name not in facts["files"]]
    if unlisted:
        raise ModelError(f"{folder}: its list of files lacks {unlisted[0]}, which cannot be checked; save it again")
    vocabulary, lexicon = load_words(folder, facts, names)
    with must_fit_manifest(folder):
        weights_file = map_file(folder / WEIGHTS)
        weights = arrays_in(weights_file)
        head = head_of_manifest(facts)
        module, name = CONFIGS[facts["architecture"]]
        config = config_from_json(getattr(import_module(module), name), facts["config"])
        check_weights(config, weights, vocabulary, n_tags=len(facts["tags"]), head=head)
        crf = _crf(weights) if head is None else None
    return TaggerFolder(config, weights_file, weights, vocabulary, lexicon, crf, facts, folder.resolve(), head)


def _facts(folder: Path, kind: str) -> JsonObject:
    return read_manifest(folder, kind=kind, version=VERSION, error=ModelError)


def _crf(weights: dict[str, np.ndarray]) -> NumpyCRF:
    """The CRF, with forbidden transitions at -inf, as in nn.crf."""
    masks = {name: weights[f"crf.{mask}"] for mask, name in CRF_MASKS.items()}
    return NumpyCRF(**{name: np.where(mask, weights[f"crf.{name}"], -np.inf) for name, mask in masks.items()})
