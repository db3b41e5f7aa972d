"""What requests ask to be read: texts for entities, or one text for its lattice and what its entities rest on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cige.api import NER
from cige.drawing.lattice import draw_lattice
from cige.entities.entity import Entity
from cige.explain.evidence import Evidence
from cige.explain.page import to_emphasis, to_marks
from cige.lattice.lattice import Lattice
from cige.lexicon.user_word import UserWord
from cige.serving.word_store import WordStore
from cige.tagging.consistency import names_to_look_for
from cige.tagging.merging import merge_windows
from cige.tagging.prediction import ScoredSpan
from cige.tagging.selection import Request, Selection
from cige.tagging.windows import ReadWindow, read_windows
from cige.text.utf16 import utf16_offsets

Found = Sequence[list[Entity]]  # the entities of each text
Names = Mapping[int, Sequence[UserWord]]  # number of a text -> names that are words of it


@dataclass(frozen=True)
class Reader:
    """A model and the words that every request is read with.

    Attributes:
        name: what requests call the model.
        place: which lexicon of the store is that of the model.
    """

    name: str
    ner: NER
    store: WordStore
    place: int = 0

    def with_words(self, words: Sequence[UserWord]) -> tuple[NER, int]:
        """The model with the words of now and those of a request, and the version of the former."""
        now = self.store.current()
        return self.ner.with_lexicon(now.lexicons[self.place]).with_words(words), now.version


@dataclass
class TextsWork(ABC):
    """What a request asks of texts (see `batcher.Work`).

    Attributes:
        consistent: read each text again with the names found in it, as `cige.tagging.consistency` describes.
    """

    reader: Reader
    texts: Sequence[str]
    request: Request
    words: Sequence[UserWord] = ()
    utf16: bool = False
    consistent: bool = False

    @property
    def n_chars(self) -> int:
        return sum(map(len, self.texts))

    @abstractmethod
    def again(self, first: EntitiesReading, found: Found, names: Names) -> EntitiesReading | ExplainReading | None:
        """What is read after `first`, which found these entities and names; None if it is what was asked for."""


@dataclass
class EntitiesWork(TextsWork):
    """Texts whose entities are asked for."""

    def prepare(self) -> EntitiesReading:
        return EntitiesReading.first(self)

    def again(self, first: EntitiesReading, found: Found, names: Names) -> EntitiesReading | None:
        if not names:
            return None
        parts = [
            (k, part)
            for k, words in names.items()
            for part in read_windows(self.texts[k], first.ner.lexicon.with_words(words).snapshot())
        ]
        known = {k: entities for k, entities in enumerate(found) if k not in names}
        return EntitiesReading(self, first.ner, first.selection, first.version, parts, known, is_last=True)


@dataclass
class EntitiesReading:
    """Texts that are being read (see `batcher.Reading`).

    Attributes:
        parts: what is read: the number of a text, and one of its windows.
        known: number of a text that is not read -> its entities.
        is_last: whether the answer is known when this was read.
    """

    work: TextsWork
    ner: NER
    selection: Selection
    version: int
    parts: list[tuple[int, ReadWindow]]
    known: Mapping[int, list[Entity]] = field(default_factory=dict)
    is_last: bool = True
    lattices: list[Lattice] = field(init=False)

    def __post_init__(self) -> None:
        self.lattices = [part.lattice for _, part in self.parts]

    @classmethod
    def first(cls, work: TextsWork) -> EntitiesReading:
        """All texts, with the words of now and those of the request."""
        ner, version = work.reader.with_words(work.words)
        snapshot = ner.lexicon.snapshot()
        parts = [(k, part) for k, text in enumerate(work.texts) for part in read_windows(text, snapshot)]
        return cls(work, ner, ner.select(work.request), version, parts, is_last=not work.consistent)

    @property
    def weights(self) -> object:
        return self.work.reader

    def further(self, spans: list[list[ScoredSpan]]) -> EntitiesReading | ExplainReading | None:
        """The texts in which names stand elsewhere too, with these names as words."""
        if self.is_last:
            return None
        own, found = frozenset(self.ner.lexicon.user_words), self.entities(spans)
        names = {}
        for k, (text, entities) in enumerate(zip(self.work.texts, found, strict=True)):
            if words := names_to_look_for(text, entities, own=own):
                names[k] = words
        return self.work.again(self, found, names)

    def answer(self, spans: list[list[ScoredSpan]]) -> dict[str, Any]:
        """The body of the response."""
        texts = zip(self.work.texts, self.entities(spans), strict=True)
        results = [{"entities": entity_dicts(entities, text, utf16=self.work.utf16)} for text, entities in texts]
        return response_head(self.work, self.version) | {"results": results}

    def entities(self, spans: list[list[ScoredSpan]]) -> list[list[Entity]]:
        """The entities of each text, sorted, from the spans found in each lattice."""
        of_texts: list[list[Any]] = [[] for _ in self.work.texts]
        for (k, part), found in zip(self.parts, spans, strict=True):
            of_texts[k].append((part.window, found))
        overlapping = self.selection.overlapping
        return [
            self.known[k] if k in self.known else merge_windows(text, found, overlapping=overlapping)
            for k, (text, found) in enumerate(zip(self.work.texts, of_texts, strict=True))
        ]


def entity_dicts(entities: Sequence[Entity], text: str, *, utf16: bool) -> list[dict[str, Any]]:
    """Entities as the response has them."""
    place = utf16_offsets(text) if utf16 else int
    return [entity.to_dict() | {"start": place(entity.start), "end": place(entity.end)} for entity in entities]


@dataclass
class ExplainWork(TextsWork):
    """Texts that are explained; they are read by themselves.

    Attributes:
        removals: read each again without each word that overlaps an entity.
        n_words: how many of the words that an entity rests on are listed, those with the most attention.
        svg_width: draw each lattice this wide, in pixels; None draws none.
    """

    removals: bool = False
    n_words: int = 5
    svg_width: int | None = None

    def prepare(self) -> EntitiesReading | ExplainReading:
        if self.consistent:  # names are found first
            return EntitiesReading.first(self)
        ner, version = self.reader.with_words(self.words)
        return ExplainReading(self, ner, ner.select(self.request), version)

    def again(self, first: EntitiesReading, found: Found, names: Names) -> ExplainReading:
        return ExplainReading(self, first.ner, first.selection, first.version, names)


@dataclass
class ExplainReading:
    """Texts that are being explained (see `batcher.Reading`): no window of theirs is shared with other requests.

    Attributes:
        names: number of a text -> names that were found in it, which are words of it.
    """

    work: ExplainWork
    ner: NER
    selection: Selection
    version: int
    names: Names = field(default_factory=dict)
    lattices: Sequence[Lattice] = ()

    @property
    def weights(self) -> object:
        return self.work.reader

    def further(self, spans: list[list[ScoredSpan]]) -> None:
        return None

    def answer(self, spans: list[list[ScoredSpan]]) -> dict[str, Any]:
        """The body of the response."""
        results = [self._explained(text, self.names.get(k, ())) for k, text in enumerate(self.work.texts)]
        return response_head(self.work, self.version) | {"results": results}

    def _explained(self, text: str, names: Sequence[UserWord]) -> dict[str, Any]:
        work = self.work
        found = self.ner.explain(
            text, removals=work.removals, word_sets=False, request=work.request, n_words=work.n_words, words=names
        )
        drawn = {}
        if work.svg_width is not None:
            drawn["svg"] = draw_lattice(
                found.lattice, marks=to_marks(found), emphasis=to_emphasis(found), width=work.svg_width, legend=False
            )
        return evidence_dict(found, utf16=work.utf16) | drawn


def response_head(work: TextsWork, version: int) -> dict[str, Any]:
    """What all responses with offsets begin with."""
    return {
        "model": work.reader.name,
        "offsets": "utf16" if work.utf16 else "code_points",
        "lexicon_version": version,
    }


def evidence_dict(evidence: Evidence, *, utf16: bool) -> dict[str, Any]:
    """Words, entities and removals of an explanation, their offsets in the unit that was asked for."""
    found = {name: value for name, value in evidence.to_dict().items() if name not in ("text", "word_sets", "maps")}
    if utf16:
        _move(found, utf16_offsets(evidence.text))
    return found


def _move(value: Any, place: Any) -> None:
    """Put every `start` and `end` in a JSON value where `place` says."""
    if isinstance(value, dict):
        for name in ("start", "end"):
            if name in value:
                value[name] = place(value[name])
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _move(item, place)
