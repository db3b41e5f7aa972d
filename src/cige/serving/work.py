"""The tasks of requests that find the entities of texts, in windows that the batcher reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from cige.api import NER
from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts
from cige.json_text import JsonObject
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import LexiconSnapshot
from cige.lexicon.user_word import UserWord
from cige.serving.answers import Answer, entities_result, with_results
from cige.serving.word_store import WordStore
from cige.tagging.consistency import names_to_look_for
from cige.tagging.merging import merge_windows
from cige.tagging.prediction import ScoredSpan
from cige.tagging.selection import Request, Selection
from cige.tagging.windows import ReadWindow, read_window, windows_of
from cige.text.closed import closed_stretches
from cige.text.windows import Window

Check = Callable[[], None]  # raises OutOfTime if nobody waits for the request any more (see `aside`)
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


@dataclass(frozen=True)
class Options:
    """How the texts of a request are read, and how their results are written.

    Attributes:
        words: the user words of the request alone.
        utf16: whether offsets count UTF-16 code units instead of code points.
        consistent: whether to predict each text again with the names found in it (see `cige.tagging.consistency`).
    """

    reader: Reader
    request: Request
    words: Sequence[UserWord] = ()
    utf16: bool = False
    consistent: bool = False

    def head(self, version: int) -> JsonObject:
        """The first fields of the response (`schemas.HeadOut`); `version` is that of the shared words."""
        return {
            "model": self.reader.name,
            "offsets": "utf16" if self.utf16 else "code_points",
            "lexicon_version": version,
        }


@dataclass
class TextsWork:
    """Texts of a request.

    Attributes:
        n_chars: number of their characters.
        n_passes: how often they are processed at most; each pass takes as much time and space in the queue as they do.
    """

    texts: Sequence[str]
    options: Options

    @property
    def n_chars(self) -> int:
        return sum(map(len, self.texts))

    @property
    def n_passes(self) -> int:
        return 2 if self.options.consistent else 1

    def reading(self, ner: NER, version: int, check: Check) -> EntitiesReading:
        """The first pass over all texts with a model, and `version` of the shared words."""
        snapshot, facts, options = ner.lexicon.snapshot(), ner.label_facts, self.options
        parts = [(k, part) for k, text in enumerate(self.texts) for part in windows(text, snapshot, facts, check)]
        return EntitiesReading(self, ner, ner.select(options.request), version, parts, is_last=not options.consistent)


@dataclass
class EntitiesWork(TextsWork):
    """Texts whose entities are requested, which `batcher.Batcher` reads."""

    def prepare(self, check: Check) -> EntitiesReading:
        """The first pass over all texts, with the current shared words and those of the request; called once."""
        ner, version = self.options.reader.with_words(self.options.words)
        return self.reading(ner, version, check)


@dataclass
class EntitiesReading:
    """A pass over the texts of a request.

    Attributes:
        selection: which entities are reported.
        version: that of the shared words.
        parts: pairs of the index of a text and one of its windows.
        known: index of a text that is not processed again -> its entities.
        is_last: whether the response is complete after this.
        lattices: the lattices of all windows.
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

    @property
    def weights(self) -> object:
        """Identifies the weights of the model; windows are batched together only if it is the same object."""
        return self.work.options.reader

    def further(self, spans: list[list[ScoredSpan]], check: Check) -> EntitiesReading | None:
        """The next pass, over the texts in which found names also occur elsewhere, with these names as words; or None.

        Like the first pass, it waits for its turns in the queue, and it has the same deadline.

        Args:
            spans: the spans found in each lattice.
        """
        if self.is_last:
            return None
        of_texts, texts = self.entities(spans, check), self.work.texts
        names = names_of_texts(self.ner, texts, of_texts, check)
        if not names:
            return None
        lexicon, facts = self.ner.lexicon, self.ner.label_facts
        parts = [
            (k, part)
            for k, words in names.items()
            for part in windows(texts[k], lexicon.with_words(words).snapshot(), facts, check)
        ]
        known = {k: entities for k, entities in enumerate(of_texts) if k not in names}
        return EntitiesReading(self.work, self.ner, self.selection, self.version, parts, known, is_last=True)

    def answer(self, spans: list[list[ScoredSpan]], check: Check) -> Answer:
        """The response."""
        options, of_texts = self.work.options, self.entities(spans, check)
        texts = zip(self.work.texts, of_texts, strict=True)
        results = [entities_result(entities, text, utf16=options.utf16, check=check) for text, entities in texts]
        labels = Counter(entity.label for entities in of_texts for entity in entities)
        return Answer(with_results(options.head(self.version), results), labels)

    def entities(self, spans: list[list[ScoredSpan]], check: Check) -> list[list[Entity]]:
        """The entities of each text, sorted, from the spans found in each lattice."""
        of_texts: list[list[tuple[Window, list[ScoredSpan]]]] = [[] for _ in self.work.texts]
        for (k, part), window_spans in zip(self.parts, spans, strict=True):
            of_texts[k].append((part.window, window_spans))
        merged = partial(merge_windows, overlapping=self.selection.overlapping)
        return [
            self.known[k] if k in self.known else merged(text, _checked(window_spans, check))
            for k, (text, window_spans) in enumerate(zip(self.work.texts, of_texts, strict=True))
        ]


def windows(text: str, snapshot: LexiconSnapshot, facts: LabelFacts, check: Check) -> Iterator[ReadWindow]:
    """Like `cige.tagging.windows.read_windows`, with the time checked before each window."""
    closed, rules = closed_stretches(text), snapshot.rules(text)
    for window in windows_of(text, facts, snapshot):
        check()
        yield read_window(text, window, snapshot, closed, rules, facts)


def names_of_texts(
    ner: NER, texts: Sequence[str], of_texts: Sequence[list[Entity]], check: Check
) -> dict[int, list[UserWord]]:
    """Index of a text -> the names that were found in it and occur elsewhere in it too; other texts are left out."""
    user_words = _CheckedSet(ner.lexicon.user_words, check)
    names = {}
    for k, (text, entities) in enumerate(zip(texts, of_texts, strict=True)):
        if words := names_to_look_for(text, entities, user_words=user_words):
            names[k] = words
    return names


class _CheckedSet(frozenset[str]):
    """The user's words; each name that is looked up among them takes a search in the text, so the time is checked."""

    def __new__(cls, words: Sequence[str], check: Check) -> _CheckedSet:
        made = super().__new__(cls, words)
        made._check = check  # type: ignore[attr-defined]
        return made

    def __contains__(self, word: object) -> bool:
        self._check()  # type: ignore[attr-defined]
        return super().__contains__(word)


def _checked(
    windows: Sequence[tuple[Window, list[ScoredSpan]]], check: Check
) -> Iterator[tuple[Window, list[ScoredSpan]]]:
    for item in windows:
        check()
        yield item
