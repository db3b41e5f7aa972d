"""The tasks of requests: find the entities of texts, or explain texts with their lattices."""

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
    """A model and the shared words.

    Attributes:
        name: the name of the model in requests.
        place: the index of the model's lexicon in the store.
    """

    name: str
    ner: NER
    store: WordStore
    place: int = 0

    def with_words(self, words: Sequence[UserWord]) -> tuple[NER, int]:
        """The model with the current shared words and the words of a request, and the version of the shared words."""
        now = self.store.current()
        return self.ner.with_lexicon(now.lexicons[self.place]).with_words(words), now.version


@dataclass
class TextsWork(ABC):
    """Texts of a request (see `batcher.Work`).

    Attributes:
        consistent: whether to predict each text again with the names found in it (see `cige.tagging.consistency`).
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

    @property
    def n_passes(self) -> int:
        return 2 if self.consistent else 1

    @abstractmethod
    def again(self, first: EntitiesReading, found: Found, names: Names) -> EntitiesReading | ExplainReading | None:
        """The second pass after `first`, which found these entities and names; None if there is no second pass."""


@dataclass
class EntitiesWork(TextsWork):
    """Texts whose entities are requested."""

    def prepare(self) -> EntitiesReading:
        return EntitiesReading.first(self)

    def again(self, first: EntitiesReading, found: Found, names: Names) -> EntitiesReading | None:
        if not names:
            return None
        facts = first.ner.label_facts
        parts = [
            (k, part)
            for k, words in names.items()
            for part in read_windows(self.texts[k], first.ner.lexicon.with_words(words).snapshot(), facts)
        ]
        known = {k: entities for k, entities in enumerate(found) if k not in names}
        return EntitiesReading(self, first.ner, first.selection, first.version, parts, known, is_last=True)


@dataclass
class EntitiesReading:
    """Texts that are being processed (see `batcher.Reading`).

    Attributes:
        parts: pairs of the index of a text and one of its windows.
        known: index of a text that is not processed again -> its entities.
        is_last: whether the response is complete after this.
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
        """All texts, with the current shared words and those of the request."""
        ner, version = work.reader.with_words(work.words)
        snapshot, facts = ner.lexicon.snapshot(), ner.label_facts
        parts = [(k, part) for k, text in enumerate(work.texts) for part in read_windows(text, snapshot, facts)]
        return cls(work, ner, ner.select(work.request), version, parts, is_last=not work.consistent)

    @property
    def weights(self) -> object:
        return self.work.reader

    def further(self, spans: list[list[ScoredSpan]]) -> EntitiesReading | ExplainReading | None:
        """The texts in which found names also occur elsewhere, with these names as words."""
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
    """Entities in the form of the response."""
    place = utf16_offsets(text) if utf16 else int
    return [entity.to_dict() | {"start": place(entity.start), "end": place(entity.end)} for entity in entities]


@dataclass
class ExplainWork(TextsWork):
    """Texts to explain, which are not batched with other requests.

    Attributes:
        removals: whether to predict again without each word that overlaps an entity.
        n_words: the maximum number of words listed per entity, those with the most attention first.
        svg_width: the width of the drawings of lattices in pixels; None makes no drawings.
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
    """Texts that are being explained (see `batcher.Reading`); their windows are not batched with other requests.

    Attributes:
        names: index of a text -> names that were found in it, which are used as words.
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
                found.lattice,
                text=text,
                marks=to_marks(found),
                emphasis=to_emphasis(found),
                width=work.svg_width,
                legend=False,
            )
        return evidence_dict(found, utf16=work.utf16) | drawn


def response_head(work: TextsWork, version: int) -> dict[str, Any]:
    """The first fields of all responses with offsets."""
    return {
        "model": work.reader.name,
        "offsets": "utf16" if work.utf16 else "code_points",
        "lexicon_version": version,
    }


def evidence_dict(evidence: Evidence, *, utf16: bool) -> dict[str, Any]:
    """Words, entities and removals of an explanation, with offsets in the requested unit."""
    found = {name: value for name, value in evidence.to_dict().items() if name not in ("text", "word_sets", "maps")}
    if utf16:
        _move(found, utf16_offsets(evidence.text))
    return found


def _move(value: Any, place: Any) -> None:
    """Convert all `start` and `end` in a JSON value with `place`."""
    if isinstance(value, dict):
        for name in ("start", "end"):
            if name in value:
                value[name] = place(value[name])
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _move(item, place)
