"""TaggerFolder: what `cige train` wrote, read without PyTorch: settings, mapped weights, vocabulary and lexicon."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cige.data.model_words import load_words, must_fit_manifest
from cige.data.tags import allowed_transitions, are_tags_of
from cige.data.vocabulary import Vocabulary
from cige.errors import ModelError
from cige.folders.hub import is_bundled
from cige.folders.kinds import TAGGER
from cige.folders.manifest import checking_contents, read_manifest
from cige.folders.mapped_arrays import arrays_in, map_file
from cige.lexicon.lexicon import Lexicon
from cige.models.config import ModelConfig
from cige.nn.crf_numpy import NumpyCRF

VERSION = 1  # of the folder's form; as in models.model
WEIGHTS = "model.safetensors"
CONFIGS = {
    "flat": ("cige.models.flat_config", "FlatConfig"),
    "soft_lexicon": ("cige.models.soft_lexicon_config", "SoftLexiconConfig"),
}
"""The architectures that the runtime computes, and where the settings of each are."""


def is_readable(folder: Path) -> bool:
    """Whether the runtime has what the model of this tagger folder needs.

    Raises:
        ModelError: the folder is damaged or no tagger's.
    """
    return _is_readable(_facts(folder))


def _is_readable(facts: dict[str, Any]) -> bool:
    config = facts.get("config")
    return facts.get("architecture") in CONFIGS and isinstance(config, dict) and config.get("bert") is None


@dataclass(frozen=True)
class TaggerFolder:
    """A tagger's folder.

    Attributes:
        config: the network's settings.
        weights_file: the file of all arrays, mapped; what was opened, even if another was saved over it since.
        weights: its arrays by name, read-only; float32 but for the rows of tables.
        vocabulary, lexicon: as in LatticeModel.
        crf: scores of tag sequences.
        facts: the manifest.
        folder: where it is.
    """

    config: ModelConfig
    weights_file: mmap.mmap
    weights: dict[str, np.ndarray]
    vocabulary: Vocabulary
    lexicon: Lexicon
    crf: NumpyCRF
    facts: dict[str, Any]
    folder: Path

    @classmethod
    def open(cls, folder: Path, facts: dict[str, Any]) -> TaggerFolder:
        """Read a folder whose files have the sizes that its manifest says; `opened` compares their contents too.

        Args:
            facts: its manifest, as `read_manifest` gives it.

        Raises:
            ModelError: a file is missing, cut short, foreign, the lexicon is not the one of the model, or the runtime
                does not know the architecture.
        """
        if not _is_readable(facts):
            raise ModelError(
                f"{folder}: a model of architecture {facts.get('architecture')!r}"
                f"{' with BERT features' if (facts.get('config') or {}).get('bert') else ''} needs PyTorch; "
                'pip install "cige[train]"'
            )
        vocabulary, lexicon = load_words(folder, facts)
        with must_fit_manifest(folder):
            weights_file = map_file(folder / WEIGHTS)
            weights = arrays_in(weights_file)
            if not are_tags_of(facts["tags"], facts["labels"], facts["scheme"]):
                raise ValueError(f"{len(facts['tags'])} tags that are not those of its labels in {facts['scheme']}")
            module, name = CONFIGS[facts["architecture"]]
            given = {k: tuple(v) if isinstance(v, list) else v for k, v in facts["config"].items()}
            config = getattr(import_module(module), name)(**given)
            crf = _crf(weights, facts["tags"])
        return cls(config, weights_file, weights, vocabulary, lexicon, crf, facts, folder.resolve())


@contextmanager
def opened(folder: Path | str) -> Iterator[TaggerFolder]:
    """A folder to read in the body, after which it has been compared with the checksums of its manifest.

    Of the bundled model, whose files were compared when the package was installed, only the sizes are: the rest would
    be a fifth of the time to the first answer. `cige doctor` compares them.

    Raises:
        ModelError: what `TaggerFolder.open` raises; or a file's contents differ.
    """
    folder = Path(folder)
    facts = _facts(folder)
    with nullcontext() if is_bundled(folder) else checking_contents(folder, facts, error=ModelError):
        yield TaggerFolder.open(folder, facts)


def _facts(folder: Path) -> dict[str, Any]:
    return read_manifest(folder, kind=TAGGER, version=VERSION, error=ModelError)


def _crf(weights: dict[str, np.ndarray], tags: list[str]) -> NumpyCRF:
    """The chain with its forbidden moves at -inf, as nn.crf keeps it."""
    names = {"start": "allowed_start", "transitions": "allowed", "end": "allowed_end"}
    shapes = [x.shape for x in allowed_transitions(tags)]
    scores = {}
    for (name, mask), shape in zip(names.items(), (shapes[0], shapes[1], shapes[2]), strict=True):
        if weights[f"crf.{name}"].shape != shape:
            raise ValueError(f"CRF scores {weights[f'crf.{name}'].shape} for {len(tags)} tags")
        scores[name] = np.where(weights[f"crf.{mask}"].astype(bool), weights[f"crf.{name}"].astype(np.float64), -np.inf)
    return NumpyCRF(**scores)
