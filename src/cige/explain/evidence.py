"""Evidence: the words that entities attended to, and what changes without them, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cige.entities.entity import Entity
from cige.explain.attention import AttentionMap, CharacterSets
from cige.lattice.lattice import Lattice
from cige.lexicon.user_word import EVIDENCE, FORCE
from cige.tagging.windows import LatticeWord


@dataclass(frozen=True)
class AttendedWord:
    """A lattice word and its `share` (0..1) of the attention that an entity's characters pay to words."""

    word: LatticeWord
    share: float

    def to_dict(self) -> dict[str, object]:
        """A dict with `start`, `end`, `text`, `is_user`, `label` and `mode` if the user gave them, and `share`."""
        return self.word.to_dict() | {"share": round(self.share, 4)}


@dataclass(frozen=True)
class EntityEvidence:
    """The words that one entity attended to.

    Attributes:
        entity: the entity.
        words: the words that its characters attended to most, in descending order of attention (mean over layers,
            heads and characters).
        on_words: share (0..1) of their attention that went to words rather than characters.
    """

    entity: Entity
    words: list[AttendedWord] = field(default_factory=list)
    on_words: float = 0.0


@dataclass(frozen=True)
class Change:
    """One entity with a word (`before`) and without it (`after`); None if there is no such entity."""

    before: Entity | None
    after: Entity | None

    @property
    def entity(self) -> Entity:
        """The entity as it is with the word, or without it if it appears then."""
        found = self.before or self.after
        assert found is not None
        return found

    @property
    def kind(self) -> Literal["vanishes", "appears", "score"]:
        if self.after is None:
            return "vanishes"
        return "appears" if self.before is None else "score"


@dataclass(frozen=True)
class Removal:
    """What changes when only `word` is removed from the lattice."""

    word: LatticeWord
    changes: list[Change]


@dataclass(frozen=True)
class Evidence:
    """An explanation as plain data. `Explanation` adds the views.

    Attributes:
        text: the string that the user passed.
        lattice: its characters and all words over them; `lattice.n_dropped` words exceeded the node budget.
        entities: each entity with the words that it attended to.
        removals: for each word that overlaps an entity and changes the result: the entities that disappear, appear or
            change their score by more than 0.05 without the word.
        n_tried: number of words that were removed, one at a time; 0 if removals were not requested.
        word_sets: the word sets of each character, or None if the model has none.
        maps: attention maps, window by window; None if they were not requested.
    """

    text: str
    lattice: Lattice
    entities: list[EntityEvidence]
    removals: list[Removal]
    n_tried: int
    word_sets: list[CharacterSets] | None = None
    maps: list[AttentionMap] | None = None

    @property
    def words(self) -> list[LatticeWord]:
        """The words of the lattice, row by row."""
        text, labels, forced = self.lattice.text, dict(self.lattice.labelled_words), self.lattice.forced_words
        rows = zip(self.lattice.words.tolist(), self.lattice.is_user.tolist(), strict=True)
        return [
            LatticeWord(start, end, text[start:end], is_user, labels.get(k), FORCE if k in forced else EVIDENCE)
            for k, ((start, end, _), is_user) in enumerate(rows)
        ]

    def to_dict(self) -> dict[str, object]:
        """All fields in a form that can be written as JSON."""
        return {
            "text": self.text,
            "words": [word.to_dict() for word in self.words],
            "n_dropped": self.lattice.n_dropped,
            "entities": [
                e.entity.to_dict() | {"on_words": round(e.on_words, 4), "words": [w.to_dict() for w in e.words]}
                for e in self.entities
            ],
            "removals": [
                r.word.to_dict() | {"changes": [_change_to_dict(change) for change in r.changes]} for r in self.removals
            ],
            "n_tried": self.n_tried,
            "word_sets": None if self.word_sets is None else [of_char.to_dict() for of_char in self.word_sets],
            "maps": None if self.maps is None else [drawn.to_dict() for drawn in self.maps],
        }


def _change_to_dict(change: Change) -> dict[str, object]:
    sides = {"before": change.before, "after": change.after}
    return {"kind": change.kind} | {name: entity and entity.to_dict() for name, entity in sides.items()}
