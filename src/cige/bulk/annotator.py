"""Annotator: find the entities of texts, or the error of each text; all engines of bulk annotation use it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from cige.bulk.fingerprint import Versions, versions_of
from cige.entities.entity import Entity
from cige.errors import ModelError, WordListWarning
from cige.folders.hub import model_folder
from cige.lexicon.report import LoadReport
from cige.tagging.finder import EntityFinder
from cige.tagging.selection import Request, Selection, Types
from cige.text.utf16 import utf16_offsets

CODE_POINTS, UTF_16 = "code-points", "utf-16"
OFFSETS = (CODE_POINTS, UTF_16)
ENTITY_FIELDS = tuple(field.name for field in fields(Entity))  # those of a column of entities in Arrow


@dataclass(frozen=True)
class AnnotatorSettings:
    """The settings with which a worker creates its Annotator; plain values, which every engine can send.

    Attributes:
        model: a model folder or hub id; None for the bundled model.
        device, precision, domain, names: as in `cige.load`; `names` is a path.
        lexicon_add: files of user words.
        min_score, labels, types, recall, nested: which entities are reported, as in a call of an NER.
        batch_size: maximum number of sentences per batch; large lattices have smaller batches.
        offsets: "code-points" or "utf-16".
        max_chars: longer texts get an error instead of entities; None means no limit.
    """

    model: str | None = None
    device: str = "cpu"
    precision: str = "auto"
    domain: str | None = None
    names: str | None = None
    lexicon_add: tuple[str, ...] = ()
    min_score: float = 0.0
    labels: tuple[str, ...] | None = None
    types: Types = "fine"
    recall: float | None = None
    nested: bool = True
    batch_size: int = 16
    offsets: str = CODE_POINTS
    max_chars: int | None = None

    def __post_init__(self) -> None:
        if self.offsets not in OFFSETS:
            raise ModelError(f"given offsets={self.offsets!r}; expected one of {', '.join(OFFSETS)}")
        if self.batch_size < 1:
            raise ModelError(f"given batch_size={self.batch_size}; expected 1 or more")

    @property
    def request(self) -> Request:
        try:
            return Request.of(
                min_score=self.min_score, labels=self.labels, types=self.types, recall=self.recall, nested=self.nested
            )
        except ValueError as reason:
            raise ModelError(str(reason)) from None


class Annotation(NamedTuple):
    """The entities of a text, or None and the reason why it could not be processed."""

    entities: list[Entity] | None
    error: str | None = None


@dataclass
class Annotator:
    """Annotates texts with one model and one state of its lexicon.

    Attributes:
        settings: its settings.
        finder: the model.
        versions: hashes of the model and of the lexicon at the time when it was created.
        reports: which lines of each file of user words were taken and refused.
    """

    settings: AnnotatorSettings
    finder: EntityFinder
    versions: Versions
    reports: tuple[LoadReport, ...] = ()
    _selection: Selection = field(init=False)

    def __post_init__(self) -> None:
        self._selection = self.finder.select(self.settings.request)

    @classmethod
    def open(cls, settings: AnnotatorSettings) -> Annotator:
        """Load the model and the user's words.

        Raises:
            ModelError: the errors of `cige.load`; the model has no lexicon for the user words; or the model does not
                report the requested labels.
            LexiconError: a file of words cannot be read.
        """
        from cige.api import NER, load_as
        from cige.nn.memory import keep_freed_memory

        keep_freed_memory()
        folder = model_folder(settings.model)
        finder = load_as(folder, settings)
        reports = []
        for path in settings.lexicon_add:
            if not isinstance(finder, NER):
                raise ModelError(f"{settings.model}: this model has no lexicon, so it cannot take the words of {path}")
            reports.append(finder.lexicon.add_file(path))
        return cls(settings, finder, versions_of(finder, folder, names=settings.names), tuple(reports))

    @classmethod
    def of_worker(cls, settings: AnnotatorSettings) -> Annotator:
        """Like `open`, without warnings of lines that are refused, which the process that plans the job has shown."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WordListWarning)
            return cls.open(settings)

    def annotate(self, texts: Sequence[Any]) -> list[Annotation]:
        """The annotation of each text, in order; texts that cannot be processed and other values get an error.

        The last digits of scores may depend on the other texts, except with cige's own runtime.
        """
        reasons = [self._reason_to_refuse(text) for text in texts]
        read = self._read([text for text, reason in zip(texts, reasons, strict=True) if reason is None])
        return [
            self._with_offsets(text, next(read)) if reason is None else Annotation(None, reason)
            for text, reason in zip(texts, reasons, strict=True)
        ]

    def _reason_to_refuse(self, text: Any) -> str | None:
        if text is None:
            return "no text"
        if not isinstance(text, str):
            return f"the text is {type(text).__name__}, expected a string"
        limit = self.settings.max_chars
        if limit is not None and len(text) > limit:
            return f"{len(text):,} characters, more than the {limit:,} allowed"
        return None

    def _read(self, texts: list[str]) -> Iterator[Annotation]:
        try:
            entities = list(self.finder.stream(texts, self._selection, batch_size=self.settings.batch_size))
        except (ArithmeticError, MemoryError, RuntimeError, ValueError) as reason:
            if len(texts) == 1:
                yield Annotation(None, f"{type(reason).__name__}: {reason}")
                return
            half = len(texts) // 2  # so that one bad text does not affect the others
            yield from self._read(texts[:half])
            yield from self._read(texts[half:])
            return
        yield from map(Annotation, entities)

    def _with_offsets(self, text: str, annotation: Annotation) -> Annotation:
        if annotation.entities is None or self.settings.offsets != UTF_16:
            return annotation
        place = utf16_offsets(text)
        return Annotation([entity.moved(place) for entity in annotation.entities])
