"""Versions: what a model and its lexicon are, as hashes that are equal only if they find the same entities."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cige.folders.manifest import MANIFEST, sha256
from cige.json_text import to_json
from cige.tagging.finder import EntityFinder


@dataclass(frozen=True)
class Versions:
    """Hashes, 16 hexadecimal digits each.

    Attributes:
        model: of the manifest of the model folder, which has a hash of each of its files.
        lexicon: of the model's base words and the user's own with their labels and modes; "" where it has none.
    """

    model: str
    lexicon: str

    def to_dict(self) -> dict[str, str]:
        """As JSON has it."""
        return asdict(self)


def versions_of(finder: EntityFinder, folder: Path) -> Versions:
    """The versions of a model that was opened from `folder`, with its lexicon as it is now."""
    from cige.api import NER

    model = sha256(folder / MANIFEST)[:16]
    if not isinstance(finder, NER):
        return Versions(model, "")
    snapshot = finder.lexicon.snapshot()
    own = [[entry.text, entry.label, entry.mode] for entry in snapshot.user_entries]
    return Versions(model, _hash([finder.lexicon.fingerprint, own, sorted(snapshot.hidden)]))


def _hash(value: Any) -> str:
    return hashlib.sha256(to_json(value, ensure_ascii=True).encode()).hexdigest()[:16]
