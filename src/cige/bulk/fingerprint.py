"""Versions: hashes of a model and its lexicon, and its precision; they are equal only if the entities are the same."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

from cige.folders.manifest import MANIFEST, sha256
from cige.json_text import to_json
from cige.runtime.precision import FLOAT32
from cige.tagging.finder import EntityFinder


@dataclass(frozen=True)
class Versions:
    """Everything except the settings that determines the entities of a text.

    Attributes:
        model: hash of the manifest of the model folder, which contains hashes of all files; 16 hexadecimal digits.
        lexicon: hash of the base words and of the user words with their labels and modes; "" if there is no lexicon.
        precision: the precision of the model (runtime.precision), which "auto" chooses by processor.
        names: hash of the kinds of the names in a list that replaces the model's own; "" if there is none.
    """

    model: str
    lexicon: str
    precision: str = FLOAT32
    names: str = ""

    def compared_with(self, before: Versions) -> str:
        """What differs from earlier versions, as the end of a sentence."""
        old, new = asdict(before), asdict(self)
        differ = [name for name in new if old[name] != new[name]]
        shown = {name: "list of names" if name == "names" else name for name in differ}
        changes = (f"the {shown[name]} was {old[name] or 'none'} and is {new[name] or 'none'}" for name in differ)
        return f"has another {' and '.join(shown.values())} ({', '.join(changes)})"

    def facts(self) -> dict[str, str]:
        """The versions by name, without what there is none of: older versions of cige wrote no version of names."""
        return {name: value for name, value in asdict(self).items() if value or name != "names"}


def versions_of(finder: EntityFinder, folder: Path, *, names: str | None = None) -> Versions:
    """The versions of a model that was loaded from `folder`, with its current lexicon; `names` as in `cige.load`."""
    from cige.api import NER

    model = sha256(folder / MANIFEST)[:16]
    if not isinstance(finder, NER):
        return Versions(model, "")
    precision = finder.model.precision or FLOAT32
    snapshot = finder.lexicon.snapshot()
    user_words = [[entry.text, entry.label, entry.mode] for entry in snapshot.user_entries]
    words = to_json([finder.lexicon.fingerprint, user_words, sorted(snapshot.hidden)], ensure_ascii=True)
    kinds = ""
    if names is not None and (groups := finder.model.vocabulary.word_groups) is not None:
        kinds = hashlib.sha256(groups.tobytes()).hexdigest()[:16]
    return Versions(model, hashlib.sha256(words.encode()).hexdigest()[:16], precision, kinds)
