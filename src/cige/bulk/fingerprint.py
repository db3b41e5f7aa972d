"""Versions: what a model and its lexicon are and what it computes in; equal only if they find the same entities."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cige.folders.manifest import MANIFEST, sha256
from cige.json_text import to_json
from cige.runtime.precision import FLOAT32
from cige.tagging.finder import EntityFinder


@dataclass(frozen=True)
class Versions:
    """What decides about the entities of a text, besides the settings.

    Attributes:
        model: hash of the manifest of the model folder, which has a hash of each of its files; 16 hexadecimal digits.
        lexicon: hash of the model's base words and the user's own with their labels and modes; "" where it has none.
        precision: what the model computes in (runtime.precision); "auto" chooses it by the processor.
    """

    model: str
    lexicon: str
    precision: str = FLOAT32

    def to_dict(self) -> dict[str, str]:
        """As JSON has it."""
        return asdict(self)


def versions_of(finder: EntityFinder, folder: Path) -> Versions:
    """The versions of a model that was opened from `folder`, with its lexicon as it is now."""
    from cige.api import NER

    model = sha256(folder / MANIFEST)[:16]
    if not isinstance(finder, NER):
        return Versions(model, "")
    precision = getattr(finder.model, "precision", FLOAT32)
    snapshot = finder.lexicon.snapshot()
    own = [[entry.text, entry.label, entry.mode] for entry in snapshot.user_entries]
    return Versions(model, _hash([finder.lexicon.fingerprint, own, sorted(snapshot.hidden)]), precision)


def _hash(value: Any) -> str:
    return hashlib.sha256(to_json(value, ensure_ascii=True).encode()).hexdigest()[:16]
