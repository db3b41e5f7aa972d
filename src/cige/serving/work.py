"""The tasks of requests: find the entities of texts, or explain texts with their lattices."""

from __future__ import annotations

from collections.abc import Sequence
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
from cige.tagging.merging import merge_windows
from cige.tagging.prediction import ScoredSpan
from cige.tagging.selection import Request, Selection
from cige.tagging.windows import ReadWindow, read_windows
from cige.text.utf16 import utf16_offsets


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
class EntitiesWork:
    """Texts whose entities are requested (see `batcher.Work`)."""

    reader: Reader
    texts: Sequence[str]
    request: Request
    words: Sequence[UserWord] = ()
    utf16: bool = False

    @property
    def n_chars(self) -> int:
        return sum(map(len, self.texts))

    def prepare(self) -> EntitiesReading:
        ner, version = self.reader.with_words(self.words)
        snapshot = ner.lexicon.snapshot()
        parts = [(k, part) for k, text in enumerate(self.texts) for part in read_windows(text, snapshot)]
        return EntitiesReading(self, ner, ner.select(self.request), version, parts)


@dataclass
class EntitiesReading:
    """Texts that are being processed (see `batcher.Reading`)."""

    work: EntitiesWork
    ner: NER
    selection: Selection
    version: int
    parts: list[tuple[int, ReadWindow]]
    lattices: list[Lattice] = field(init=False)

    def __post_init__(self) -> None:
        self.lattices = [part.lattice for _, part in self.parts]

    @property
    def weights(self) -> object:
        return self.work.reader

    def answer(self, spans: list[list[ScoredSpan]]) -> dict[str, Any]:
        """The body of the response."""
        of_texts: list[list[Any]] = [[] for _ in self.work.texts]
        for (k, part), found in zip(self.parts, spans, strict=True):
            of_texts[k].append((part.window, found))
        results = [
            {"entities": entity_dicts(merge_windows(text, found, overlapping=self.selection.overlapping), text, self)}
            for text, found in zip(self.work.texts, of_texts, strict=True)
        ]
        return response_head(self.work, self.version) | {"results": results}


def entity_dicts(entities: Sequence[Entity], text: str, reading: EntitiesReading) -> list[dict[str, Any]]:
    """Entities in the form of the response."""
    place = utf16_offsets(text) if reading.work.utf16 else int
    return [entity.to_dict() | {"start": place(entity.start), "end": place(entity.end)} for entity in entities]


@dataclass
class ExplainWork:
    """Texts to explain (see `batcher.Work`), which are not batched with other requests.

    Attributes:
        removals: whether to predict again without each word that overlaps an entity.
        n_words: the maximum number of words listed per entity, those with the most attention first.
        svg_width: the width of the drawings of lattices in pixels; None makes no drawings.
    """

    reader: Reader
    texts: Sequence[str]
    request: Request
    words: Sequence[UserWord] = ()
    utf16: bool = False
    removals: bool = False
    n_words: int = 5
    svg_width: int | None = None

    @property
    def n_chars(self) -> int:
        return sum(map(len, self.texts))

    def prepare(self) -> ExplainReading:
        ner, version = self.reader.with_words(self.words)
        return ExplainReading(self, ner, ner.select(self.request), version)


@dataclass
class ExplainReading:
    """Texts that are being explained (see `batcher.Reading`); their windows are not batched with other requests."""

    work: ExplainWork
    ner: NER
    selection: Selection
    version: int
    lattices: Sequence[Lattice] = ()

    @property
    def weights(self) -> object:
        return self.work.reader

    def answer(self, spans: list[list[ScoredSpan]]) -> dict[str, Any]:
        """The body of the response."""
        return response_head(self.work, self.version) | {"results": list(map(self._explained, self.work.texts))}

    def _explained(self, text: str) -> dict[str, Any]:
        work = self.work
        found = self.ner.explain(
            text, removals=work.removals, word_sets=False, request=work.request, n_words=work.n_words
        )
        drawn = {}
        if work.svg_width is not None:
            drawn["svg"] = draw_lattice(
                found.lattice, marks=to_marks(found), emphasis=to_emphasis(found), width=work.svg_width, legend=False
            )
        return evidence_dict(found, utf16=work.utf16) | drawn


def response_head(work: EntitiesWork | ExplainWork, version: int) -> dict[str, Any]:
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
