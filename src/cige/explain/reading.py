"""explain: predict a text, record the words that each entity attended to, and predict again without each word."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from cige.entities.entity import Entity
from cige.explain.attention import has_word_sets, read_maps, read_word_sets
from cige.explain.evidence import AttendedWord, Change, EntityEvidence, Removal
from cige.explain.explanation import Explanation
from cige.explain.model import LoadedModel
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import LexiconSnapshot
from cige.tagging.merging import merge_windows
from cige.tagging.prediction import PredictionModel, ScoredSpan, batches_by_size, decode_spans, predict_spans
from cige.tagging.selection import Request, Selection, select, warn_of_other_case
from cige.tagging.windows import ReadWindow, lattice_word, read_windows
from cige.text.normalize import normalize

SCORE_STEP = 0.05  # smaller changes of an entity's score are not reported
_Place = tuple[int, int, str, tuple[tuple[int, int], ...]]  # start, end, label, parts


def explain(
    model: LoadedModel,
    text: str,
    *,
    n_words: int = 5,
    removals: bool = True,
    word_sets: bool | None = None,
    maps: bool = False,
    request: Request | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Explanation:
    """Predict `text` and explain which words each entity depends on.

    Attention shows which words the model used. `removals` shows which of them matter: the text is predicted again
    without each word that overlaps an entity (one forward pass per word, in batches), which takes nearly all of the
    time. The arguments are those of `NER.explain`.

    Raises:
        ModelError: word sets or maps were requested of a model that has none, or the model does not support the
            request.
    """
    words = model.lexicon.user_label_names
    warn_of_other_case(words, model.labels)
    selection = select(request or Request(), model.labels, model.label_facts, word_labels=words)
    snapshot = model.lexicon.snapshot()
    parts = read_windows(text, snapshot, model.label_facts)
    listed = has_word_sets(model) if word_sets is None else word_sets
    sets = read_word_sets(model, parts, snapshot) if listed else None
    drawn = read_maps(model, parts, snapshot) if maps else None
    readings = _read_with_attention(model, [part.lattice for part in parts], selection)
    entities = merge_windows(
        text,
        ((p.window, [s.span for s in r]) for p, r in zip(parts, readings, strict=True)),
        overlapping=selection.overlapping,
    )
    evidence = {
        _place(a.span, part.window.start): (part, a)
        for part, reading in zip(parts, readings, strict=True)
        for a in reading
        if part.window.core_start <= part.window.start + a.span.start < part.window.core_end
    }
    removed, n_tried = [], 0
    if removals:
        for part, reading in zip(parts, readings, strict=True):
            of_part, n = _remove_each_word(model, text, part, [a.span for a in reading], entities, snapshot, selection)
            removed += of_part
            n_tried += n
            if on_progress is not None:
                on_progress(part.window.core_end, len(text))
    return Explanation(
        text=text,
        lattice=_whole_lattice(text, parts, snapshot),
        entities=[_to_evidence(e, *evidence[_place(e)], snapshot, n_words) for e in entities],
        removals=removed,
        n_tried=n_tried,
        word_sets=sets,
        maps=drawn,
    )


@dataclass(frozen=True)
class _Attending:
    """A span of one lattice, and the mean attention of its characters to each word, float[W]."""

    span: ScoredSpan
    attention: np.ndarray


def _read_with_attention(
    model: PredictionModel, lattices: list[Lattice], selection: Selection
) -> list[list[_Attending]]:
    read: list[list[_Attending]] = [[] for _ in lattices]
    for chosen in batches_by_size(lattices):
        batch = [lattices[k] for k in chosen]
        emissions, attention = model.read_words(batch)
        for row, (k, spans) in enumerate(zip(chosen, decode_spans(model, emissions, batch, selection), strict=True)):
            own = attention[row, : lattices[k].n_chars, : lattices[k].n_words]
            read[k] = [_Attending(s, np.concatenate([own[a:b] for a, b in _pieces(s)]).mean(0)) for s in spans]
    return read


def _pieces(span: ScoredSpan) -> tuple[tuple[int, int], ...]:
    return span.parts or ((span.start, span.end),)


def _place(entity: Entity | ScoredSpan, offset: int = 0) -> _Place:
    """The offsets from `offset` on and the label, of which no other entity of a text has the same."""
    parts = tuple((offset + start, offset + end) for start, end in entity.parts)
    return offset + entity.start, offset + entity.end, entity.label, parts


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
    selection: Selection,
) -> tuple[list[Removal], int]:
    """The removals for the entities of one window's core, and the number of words that were tried."""
    window, words = part.window, part.lattice.words
    in_core = [e for e in entities if window.core_start <= e.start < window.core_end]
    overlaps = np.zeros(len(words), bool)
    for entity in in_core:
        overlaps |= (words[:, 0] < entity.end - window.start) & (words[:, 1] > entity.start - window.start)
    tried = np.flatnonzero(overlaps)
    variants = [replace(part.lattice, words=np.delete(words, k, axis=0)) for k in tried]

    def entities_of(spans: list[ScoredSpan]) -> dict[_Place, Entity]:
        merged = merge_windows(text, [(window, spans)], overlapping=selection.overlapping)
        return {_place(e): e for e in merged}

    before = entities_of(spans)
    removals = []
    for k, without in zip(tried, predict_spans(model, variants, selection), strict=True):
        after = entities_of(without)
        changes = [
            Change(before.get(key), after.get(key))
            for key in sorted(before.keys() | after.keys())
            if key not in before or key not in after or abs(before[key].score - after[key].score) > SCORE_STEP
        ]
        if changes:
            removals.append(Removal(lattice_word(int(k), part, snapshot), changes))
    return removals, len(tried)


def _whole_lattice(text: str, parts: list[ReadWindow], snapshot: LexiconSnapshot) -> Lattice:
    """Combine the lattices of all windows into one; each contributes the words that start in its core."""
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
        user_labels=snapshot.user_labels,
        rules=snapshot.rules(text),
    )
