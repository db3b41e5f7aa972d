"""The tasks of requests that explain texts or draw their lattices, which are not batched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cige.api import NER
from cige.drawing.lattice import GUTTER, MARGIN, NARROW, WIDE
from cige.drawing.svg import is_wide
from cige.explain.evidence import Evidence
from cige.explain.explanation import draw_evidence
from cige.explain.reading import explain
from cige.json_text import JsonObject, json_bytes
from cige.lattice.lattice import Lattice
from cige.lexicon.user_word import UserWord
from cige.serving.answers import Answer, with_results
from cige.serving.aside import Watch
from cige.serving.refusals import Refused
from cige.serving.work import TextsWork, names_of_texts, windows
from cige.tagging.prediction import predict_spans
from cige.text.utf16 import utf16_offsets

MOST_NODES = 12_000  # of the lattices that are explained at once; news has 1.8 per character
MOST_COMPARED = 1_500_000  # pairs of bars in the rows of a drawing, each of which takes about 0.14 µs


@dataclass
class ExplainWork(TextsWork):
    """Texts to explain (see `aside.AsideWork`).

    Attributes:
        removals: whether to predict again without each word that overlaps an entity.
        n_words: the maximum number of words listed per entity, those with the most attention first.
        svg_width: the width of the drawings of lattices in pixels; None makes no drawings.
        as_lattice: whether the response is that of /v1/lattice, with one text.
    """

    removals: bool = False
    n_words: int = 5
    svg_width: int | None = None
    as_lattice: bool = False

    def run(self, watch: Watch) -> Answer:
        """The response.

        Raises:
            OutOfTime: the deadline has passed, or the client has left.
            Refused: the lattices have too many nodes, or a drawing would take too long.
        """
        options = self.options
        ner, version = options.reader.with_words(options.words)
        names = self._names(ner, version, watch) if options.consistent else {}
        of_texts = [ner.with_words(names.get(k, ())) for k in range(len(self.texts))]
        self._check_nodes(of_texts, watch)
        labels: Counter[str] = Counter()
        results = []
        for text, ner_of_text in zip(self.texts, of_texts, strict=True):
            evidence, svg = self._explained(text, ner_of_text, watch)
            labels.update(explained.entity.label for explained in evidence.entities)
            results.append(self._result(evidence) | ({"svg": svg} if svg else {}))
        head = options.head(version)
        if self.as_lattice:
            return Answer(json_bytes(head | results[0]), labels)
        return Answer(with_results(head, map(json_bytes, results)), labels)

    def _names(self, ner: NER, version: int, watch: Watch) -> dict[int, list[UserWord]]:
        """The names found in each text that occur elsewhere in it too, which become words of it."""
        reading = self.reading(ner, version, watch.check)
        spans = predict_spans(watch.watched(ner.model), reading.lattices, reading.selection)
        return names_of_texts(ner, self.texts, reading.entities(spans, watch.check), watch.check)

    def _check_nodes(self, of_texts: Sequence[NER], watch: Watch) -> None:
        n_nodes = 0
        for text, ner in zip(self.texts, of_texts, strict=True):
            for part in windows(text, ner.lexicon.snapshot(), ner.label_facts, watch.check):
                n_nodes += part.lattice.n_nodes
        if n_nodes > MOST_NODES:
            raise Refused(
                "too_many_nodes",
                f"given a lattice of {n_nodes:,} characters and words; at most {MOST_NODES:,} are explained at once; "
                "send a part of the text, or fewer words that lie within one another",
                given=n_nodes,
                most=MOST_NODES,
            )

    def _explained(self, text: str, ner: NER, watch: Watch) -> tuple[Evidence, str | None]:
        """The explanation of one text, and its drawing if one was requested."""
        evidence = explain(
            watch.watched(ner.model),
            text,
            removals=self.removals,
            word_sets=False,
            request=self.options.request,
            n_words=self.n_words,
        )
        watch.check()
        svg = None
        if self.svg_width is not None:
            _check_drawing(evidence.lattice, text, self.svg_width)
            svg = draw_evidence(evidence, width=self.svg_width, legend=False)
        watch.check()
        return evidence, svg

    def _result(self, evidence: Evidence) -> JsonObject:
        """Words, entities and removals of an explanation, with offsets in the requested unit."""
        left_out = {"text", "word_sets", "maps"} | ({"removals", "n_tried"} if self.as_lattice else set())
        fields = {name: value for name, value in evidence.to_dict().items() if name not in left_out}
        if self.options.utf16:
            _move(fields, utf16_offsets(evidence.text))
        return fields


def _check_drawing(lattice: Lattice, text: str, width: int) -> None:
    n_compared = _n_compared(lattice, text, width)
    if n_compared > MOST_COMPARED:
        raise Refused(
            "drawing_too_large",
            f"given svg_width={width} for a text of {len(text):,} characters with {lattice.n_words:,} words, which "
            "would take too long to draw; send a shorter text, or set a larger svg_width, or none",
            width=width,
            characters=len(text),
            words=lattice.n_words,
        )


def _n_compared(lattice: Lattice, text: str, width: int) -> int:
    """Upper estimate of the pairs of bars that share a row of a drawing, which are compared to place them."""
    if not text:
        return 0
    room = max(WIDE, width - 2 * MARGIN - GUTTER) / 2  # rows end between words if that leaves them half full
    widths = np.array([WIDE if is_wide(char) else NARROW for char in text])
    of_chars = ((widths.cumsum() - widths) // room).astype(np.int64)  # row of each character
    first, last = of_chars[lattice.words[:, 0]], of_chars[lattice.words[:, 1] - 1]
    steps = np.zeros(int(of_chars[-1]) + 2, np.int64)
    np.add.at(steps, first, 1)
    np.add.at(steps, last + 1, -1)
    return int((steps.cumsum() ** 2).sum())


def _move(value: object, place: Callable[[int], int]) -> None:
    """Convert all `start`, `end` and `parts` in a JSON value with `place`."""
    if isinstance(value, dict):
        for name in ("start", "end"):
            if name in value:
                value[name] = place(value[name])
        if "parts" in value:
            value["parts"] = [[place(offset) for offset in part] for part in value["parts"]]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _move(item, place)
