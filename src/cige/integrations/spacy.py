"""The spaCy component: `nlp.add_pipe("cige")` sets `doc.ents`, a span group with scores, and `doc._.cige_entities`.

    nlp = spacy.blank("zh")              # a token per character, so every entity is a span of tokens
    nlp.add_pipe("cige", config={"words": {"阿拉善贺兰草": "COMPANY"}})

The component is registered by importing this module, or by installing cige in the same environment as spaCy.
"""

# Without `from __future__ import annotations`: before confection 1, spaCy cannot read annotations that are strings, as
# those of make_component would be.

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import srsly
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import ensure_path, filter_spans, minibatch

from cige.entities.entity import Entity
from cige.errors import CigeError, WordListWarning
from cige.integrations.model_bytes import UnpackedModel, files_of
from cige.json_text import JsonObject
from cige.lexicon.user_word import UserWord
from cige.lexicon.word_versions import word_file

if TYPE_CHECKING:
    from cige.api import NER
    from cige.tagging.finder import EntityFinder

ALIGNMENTS = ("expand", "contract", "strict")
MODEL = "model"  # name of the model folder in the component's folder
DEFAULTS: dict[str, object] = {
    "model": None,
    "device": "cpu",
    "words": {},
    "word_files": [],
    "min_score": 0.0,
    "labels": None,
    "types": "fine",
    "consistent": False,
    "spans_key": "cige",
    "set_ents": True,
    "overwrite_ents": True,
    "alignment": "expand",
}


@Language.factory("cige", assigns=["doc.ents", "doc.spans", "doc._.cige_entities"], default_config=DEFAULTS)
def make_component(
    nlp: Language,
    name: str,
    model: str | None,
    device: str,
    words: dict[str, str | None] | list[str],
    word_files: list[str],
    min_score: float,
    labels: list[str] | None,
    types: str,
    consistent: bool,
    spans_key: str | None,
    set_ents: bool,
    overwrite_ents: bool,
    alignment: str,
) -> "CigeComponent":
    """Create the component of a pipeline; spaCy calls this function with the settings of the pipeline's config.

    Args:
        model: model folder or hub id; None for the bundled model.
        device: as in `cige.load`.
        words: user words, as a list or as a dict with the label of each (or null).
        word_files: files of user words, in a format of `--lexicon-add`.
        min_score, labels, types: which entities are reported, as in a call of an NER.
        consistent: whether a document is predicted a second time, with the names found in it as words, if a name was
            found at one of its occurrences and not at another.
        spans_key: name of the group in `doc.spans`, whose `attrs["scores"]` are the scores; None for no group.
        set_ents: whether to write `doc.ents`.
        overwrite_ents: whether to overwrite entities of other components; otherwise, these take precedence.
        alignment: how to handle entities that do not begin and end at token boundaries: "expand" includes all tokens
            that they overlap, "contract" only those that they cover completely, and "strict" leaves these entities out.
            With the default settings of spacy.blank("zh"), tokens are characters, so no alignment is needed.
            `doc._.cige_entities` always has the exact offsets.
    """
    return CigeComponent(
        name,
        model=model,
        device=device,
        words=words,
        word_files=word_files,
        min_score=min_score,
        labels=labels,
        types=types,
        consistent=consistent,
        spans_key=spans_key,
        set_ents=set_ents,
        overwrite_ents=overwrite_ents,
        alignment=alignment,
    )


class CigeComponent(Pipe):
    """Finds the entities of documents; see `make_component`.

    The model is loaded on first use, so a pipeline that is read from disk does not need the model of its config.
    """

    def __init__(
        self,
        name: str = "cige",
        *,
        model: str | None = None,
        device: str = "cpu",
        words: dict[str, str | None] | Sequence[str] = (),
        word_files: Sequence[str] = (),
        min_score: float = 0.0,
        labels: Sequence[str] | None = None,
        types: str = "fine",
        consistent: bool = False,
        spans_key: str | None = "cige",
        set_ents: bool = True,
        overwrite_ents: bool = True,
        alignment: str = "expand",
    ):
        if alignment not in ALIGNMENTS:
            raise CigeError(f"alignment={alignment!r}: expected one of {', '.join(ALIGNMENTS)}")
        self.name = name
        self.model_name, self.device = model, device
        self.words = dict(words) if isinstance(words, dict) else dict.fromkeys(words)
        self.word_files = list(word_files)
        self.request: JsonObject = {"min_score": min_score, "labels": labels, "types": types, "consistent": consistent}
        self.spans_key, self.set_ents, self.overwrite_ents = spans_key, set_ents, overwrite_ents
        self.alignment: Any = alignment
        self._finder: EntityFinder | None = None
        self._unpacked: UnpackedModel | None = None  # the model of `from_bytes`
        _register_extensions()

    @property
    def finder(self) -> "EntityFinder":
        """The model, with the words of the config.

        Raises:
            CigeError: it cannot be loaded, or the words cannot be used.

        Warns:
            WordListWarning: lines of a file of words cannot be used; the others are.
        """
        if self._finder is None:
            from cige.api import load

            finder = load(self.model_name, self.device)
            if self.words or self.word_files:
                lexicon = _with_lexicon(finder).lexicon
                lexicon.add_entries(*(UserWord(word, label) for word, label in self.words.items()))
                for path in map(word_file, self.word_files):
                    report = lexicon.add_file(path)
                    if report.is_incomplete:
                        warnings.warn(str(report), WordListWarning, stacklevel=2)
            self._finder = finder
        return self._finder

    @property
    def ner(self) -> "NER":
        """The model, as in `nlp.get_pipe("cige").ner.lexicon.add(...)`; raises a CigeError if it has no lexicon."""
        return _with_lexicon(self.finder)

    @property
    def labels(self) -> tuple[str, ...]:
        """The entity types that the model knows; empty before it is loaded, since spaCy reads them early."""
        return () if self._finder is None else tuple(self._finder.labels)

    def __call__(self, doc: Doc) -> Doc:
        try:
            self._annotate(doc, self.finder(doc.text, **self.request))
        except Exception as error:
            self.get_error_handler()(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """The documents of a stream, in order; `nlp.pipe` calls this."""
        for docs in minibatch(stream, batch_size):
            try:
                answers = list(self.finder.pipe([doc.text for doc in docs], **self.request))
                for doc, entities in zip(docs, answers, strict=True):
                    self._annotate(doc, entities)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            yield from docs

    def _annotate(self, doc: Doc, entities: list[Entity]) -> None:
        doc._.cige_entities = tuple(entity.to_dict() for entity in entities)
        spans, scores, without_gaps = [], [], []
        for entity in entities:
            span = doc.char_span(entity.start, entity.end, label=entity.label, alignment_mode=self.alignment)
            if span is not None and len(span):
                span._.cige_score = entity.score
                spans.append(span)
                scores.append(entity.score)
                if not entity.parts:
                    without_gaps.append(span)
        if self.spans_key is not None:
            doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=spans, attrs={"scores": scores})
        if self.set_ents:
            doc.ents = _without_overlaps(without_gaps, () if self.overwrite_ents else doc.ents)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model, including words that were added to it, so that the pipeline needs no other files."""
        folder = ensure_path(path)
        folder.mkdir(parents=True, exist_ok=True)
        if MODEL not in exclude:
            self.ner.save_pretrained(folder / MODEL)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "CigeComponent":
        """Read a component that `to_disk` wrote."""
        if MODEL not in exclude:
            self._open(ensure_path(path) / MODEL)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The component as bytes, of about the size of the model folder."""
        return srsly.msgpack_dumps({} if MODEL in exclude else files_of(self.ner))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "CigeComponent":
        """Read the result of `to_bytes`; the model is in a temporary folder that exists as long as the component."""
        files = {} if MODEL in exclude else srsly.msgpack_loads(data)
        if files:
            self._unpacked = UnpackedModel(files)
            self._open(self._unpacked.folder)
        return self

    def score(self, examples: Iterable[Example], **options: Any) -> dict[str, float | dict[str, float]]:
        """Precision, recall and F1 of `doc.ents`, as those of spaCy's own `ner`; `nlp.evaluate` calls this."""
        return get_ner_prf(examples, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Include the model if its folder is temporary, so that a copy does not depend on this object."""
        state = dict(vars(self))
        files = None
        if state.pop("_unpacked") is not None:
            state["_finder"], files = None, files_of(self.ner)
        return _restored, (type(self), self.name, state, files)

    def _open(self, folder: Path) -> None:
        from cige.api import load

        self._finder = load(folder, self.device)


def _restored(
    kind: type[CigeComponent], name: str, state: Mapping[str, object], files: dict[str, bytes] | None
) -> CigeComponent:
    """A component that was pickled or copied."""
    component = kind(name)
    vars(component).update(state)
    if files is not None:
        component._unpacked = UnpackedModel(files)
        component._open(component._unpacked.folder)
    return component


def _with_lexicon(finder: "EntityFinder") -> "NER":
    from cige.api import NER

    if not isinstance(finder, NER):
        raise CigeError(
            f"a {type(finder).__name__} has no lexicon for words of your own, and a pipeline cannot keep it"
        )
    return finder


def _without_overlaps(spans: Sequence[Span], preset: Sequence[Span]) -> list[Span]:
    """Disjoint spans: all `preset` spans, and of other overlapping spans the longer ones."""
    taken = {token for span in preset for token in range(span.start, span.end)}
    free = [span for span in spans if not taken.intersection(range(span.start, span.end))]
    return [*preset, *filter_spans(free)]


def _register_extensions() -> None:
    for owner, name in ((Doc, "cige_entities"), (Span, "cige_score")):
        if not owner.has_extension(name):
            owner.set_extension(name, default=None)
