"""Explanation: the words that entities were read from, and what a model finds without them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cige.entities.entity import Entity
from cige.errors import CigeError
from cige.explain_attention import (
    AttentionMap,
    CharacterSets,
    has_word_sets,
    lattice_word,
    read_maps,
    read_word_sets,
)
from cige.files import atomic_file
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import LexiconSnapshot
from cige.pipeline import NER, LatticeWord, ReadWindow, merge_windows
from cige.prediction import PredictionModel, ScoredSpan, batches_of_like_size, decode_spans, predict_spans
from cige.text.normalize import normalize

if TYPE_CHECKING:
    from rich.console import RenderableType

SCORE_STEP = 0.05  # a smaller change of an entity's score is not worth a line


@dataclass(frozen=True)
class AttendedWord:
    """A lattice word and its `share`, 0..1, of all the attention that an entity's characters pay to words."""

    word: LatticeWord
    share: float

    def to_dict(self) -> dict[str, Any]:
        """start, end, text, is_user and share."""
        return vars(self.word) | {"share": round(self.share, 4)}


@dataclass(frozen=True)
class EntityEvidence:
    """What one entity was read from.

    Attributes:
        entity: the entity.
        words: those its characters attended to most, the most attended first (mean over layers, heads and characters).
        on_words: share, 0..1, of their attention that went to words rather than characters.
    """

    entity: Entity
    words: list[AttendedWord] = field(default_factory=list)
    on_words: float = 0.0


@dataclass(frozen=True)
class Change:
    """One entity with a word and without it; None where there is no such entity."""

    before: Entity | None
    after: Entity | None

    @property
    def kind(self) -> Literal["vanishes", "appears", "score"]:
        if self.after is None:
            return "vanishes"
        return "appears" if self.before is None else "score"


@dataclass(frozen=True)
class Removal:
    """What changes when `word` is taken out of the lattice and nothing else."""

    word: LatticeWord
    changes: list[Change]


@dataclass(frozen=True)
class Explanation:
    """How a text was read.

    Attributes:
        text: the user's own string.
        lattice: its characters and all words over them; `lattice.n_dropped` words were over the node budget.
        entities: each entity with the words it was read from.
        removals: for each word that overlaps an entity and matters: which entities vanish, appear or change their
            score by more than 0.05 without it.
        n_tried: words that were taken out, one at a time; 0 if that was not asked for.
        word_sets: the words of each character, in the sets of a soft lexicon; None where the model has no such sets.
        maps: attention as maps, those of each window of the text in turn; None if they were not asked for.
    """

    text: str
    lattice: Lattice
    entities: list[EntityEvidence]
    removals: list[Removal]
    n_tried: int
    word_sets: list[CharacterSets] | None = None
    maps: list[AttentionMap] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        return {
            "text": self.text,
            "words": [
                {"start": start, "end": end, "text": self.lattice.text[start:end], "is_user": is_user}
                for (start, end, _), is_user in zip(
                    self.lattice.words.tolist(), self.lattice.is_user.tolist(), strict=True
                )
            ],
            "n_dropped": self.lattice.n_dropped,
            "entities": [
                e.entity.to_dict() | {"on_words": round(e.on_words, 4), "words": [w.to_dict() for w in e.words]}
                for e in self.entities
            ],
            "removals": [
                vars(r.word) | {"changes": [_change_to_dict(change) for change in r.changes]} for r in self.removals
            ],
            "n_tried": self.n_tried,
            "word_sets": None if self.word_sets is None else [of_char.to_dict() for of_char in self.word_sets],
            "maps": None if self.maps is None else [drawn.to_dict() for drawn in self.maps],
        }

    def to_terminal(self) -> RenderableType:
        """Tables for a terminal: `rich.print(explanation.to_terminal())`."""
        from cige.explain_views import to_terminal

        return to_terminal(self)

    def to_svg(self) -> str:
        """One SVG file: the lattice with attention as depth of colour, then word sets and maps where there are any."""
        from cige.explain_views import to_svg

        return to_svg(self)

    def to_html(self) -> str:
        """One HTML page that needs nothing else: the drawings, the entities with their words, and what changes."""
        from cige.explain_views import to_html

        return to_html(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write an HTML page, or the drawing alone if `path` ends in .svg or .png; whole or not at all.

        Raises:
            CigeError: `path` ends otherwise, or in .png where no font here has the characters of the text.
        """
        kind = Path(path).suffix.lower()
        if kind == ".png":
            from cige.svg_to_png import save_png

            save_png(self.to_svg(), path)
            return
        if kind not in (".html", ".htm", ".svg"):
            raise CigeError(f"{path}: ends in {kind or 'nothing'!r}; expected .html, .svg or .png")
        content = self.to_svg() if kind == ".svg" else self.to_html()
        with atomic_file(Path(path)) as aside:
            aside.write_text(content, encoding="utf-8")


def explain(
    ner: NER,
    text: str,
    *,
    n_words: int = 5,
    removals: bool = True,
    word_sets: bool | None = None,
    maps: bool = False,
) -> Explanation:
    """Read `text` and say which words each entity was read from.

    Attention shows where the model looked; `removals` shows what mattered, by reading the text again without each
    word that overlaps an entity (one reading a word, in batches).

    Args:
        n_words: list the words that an entity attended to most, up to this many.
        removals: False saves the further readings.
        word_sets: list the word sets of each character; None does where the model has them.
        maps: draw attention as maps.

    Raises:
        ModelError: word sets or maps were asked of a model that has none.
    """
    snapshot = ner.lexicon.snapshot()
    parts = ner.read(text, snapshot)
    listed = has_word_sets(ner.model) if word_sets is None else word_sets
    sets = read_word_sets(ner.model, parts, snapshot) if listed else None
    drawn = read_maps(ner.model, parts, snapshot) if maps else None
    readings = _read_with_attention(ner.model, [part.lattice for part in parts])
    entities = merge_windows(text, ((p.window, [s.span for s in r]) for p, r in zip(parts, readings, strict=True)))
    evidence = {
        (part.window.start + a.span.start, part.window.start + a.span.end, a.span.label): (part, a)
        for part, reading in zip(parts, readings, strict=True)
        for a in reading
        if part.window.core_start <= part.window.start + a.span.start < part.window.core_end
    }
    removed, n_tried = [], 0
    if removals:
        for part, reading in zip(parts, readings, strict=True):
            found, n = _remove_each_word(ner.model, text, part, [a.span for a in reading], entities, snapshot)
            removed += found
            n_tried += n
    return Explanation(
        text=text,
        lattice=_whole_lattice(text, parts, snapshot),
        entities=[_to_evidence(e, *evidence[e.start, e.end, e.label], snapshot, n_words) for e in entities],
        removals=removed,
        n_tried=n_tried,
        word_sets=sets,
        maps=drawn,
    )


@dataclass(frozen=True)
class _Attending:
    """A span of one lattice and float[W], the mean attention of its characters to each word."""

    span: ScoredSpan
    attention: np.ndarray


def _read_with_attention(model: PredictionModel, lattices: list[Lattice]) -> list[list[_Attending]]:
    read: list[list[_Attending]] = [[] for _ in lattices]
    for chosen in batches_of_like_size(lattices):
        batch = [lattices[k] for k in chosen]
        emissions, attention = model.read_words(batch)
        for row, (k, spans) in enumerate(zip(chosen, decode_spans(model, emissions, batch), strict=True)):
            n_words = lattices[k].n_words
            read[k] = [_Attending(s, attention[row, s.start : s.end, :n_words].mean(0)) for s in spans]
    return read


def _to_evidence(
    entity: Entity, part: ReadWindow, attending: _Attending, snapshot: LexiconSnapshot, n_words: int
) -> EntityEvidence:
    attention = attending.attention
    on_words = float(attention.sum())
    most = [k for k in np.argsort(-attention, kind="stable")[:n_words] if attention[k] > 0]
    listed = [AttendedWord(lattice_word(int(k), part, snapshot), float(attention[k]) / on_words) for k in most]
    return EntityEvidence(entity=entity, words=listed, on_words=on_words)


def _remove_each_word(
    model: PredictionModel,
    text: str,
    part: ReadWindow,
    spans: list[ScoredSpan],
    entities: Iterable[Entity],
    snapshot: LexiconSnapshot,
) -> tuple[list[Removal], int]:
    """Removals in one window, for the entities that it answers for, and how many words were tried."""
    window, words = part.window, part.lattice.words
    own = [e for e in entities if window.core_start <= e.start < window.core_end]
    overlaps = np.zeros(len(words), bool)
    for entity in own:
        overlaps |= (words[:, 0] < entity.end - window.start) & (words[:, 1] > entity.start - window.start)
    tried = np.flatnonzero(overlaps)
    variants = [replace(part.lattice, words=np.delete(words, k, axis=0)) for k in tried]
    before = {(e.start, e.end, e.label): e for e in merge_windows(text, [(window, spans)])}
    removals = []
    for k, found in zip(tried, predict_spans(model, variants), strict=True):
        after = {(e.start, e.end, e.label): e for e in merge_windows(text, [(window, found)])}
        changes = [
            Change(before.get(key), after.get(key))
            for key in sorted(before.keys() | after.keys())
            if key not in before or key not in after or abs(before[key].score - after[key].score) > SCORE_STEP
        ]
        if changes:
            removals.append(Removal(lattice_word(int(k), part, snapshot), changes))
    return removals, len(tried)


def _whole_lattice(text: str, parts: list[ReadWindow], snapshot: LexiconSnapshot) -> Lattice:
    """The lattices of all windows as one: each gives the words that start in its core."""
    rows = [np.zeros((0, 3), np.int32)]
    for part in parts:
        shifted = part.lattice.words + np.array([part.window.start, part.window.start, 0], np.int32)
        in_core = (shifted[:, 0] >= part.window.core_start) & (shifted[:, 0] < part.window.core_end)
        rows.append(shifted[in_core])
    return Lattice(
        text=normalize(text),
        words=np.concatenate(rows),
        n_base=snapshot.n_base,
        n_dropped=sum(part.lattice.n_dropped for part in parts),
    )


def _change_to_dict(change: Change) -> dict[str, Any]:
    sides = {"before": change.before, "after": change.after}
    return {"kind": change.kind} | {name: entity and entity.to_dict() for name, entity in sides.items()}
