"""The programs that are compared with cige: each finds PER, LOC and ORG in texts, by its own public interface.

A program is an object with a `name` and a method `read(texts)` that gives the spans of each text. It loads what it
needs when it is made, so that no loading is in its time.
"""

import json
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from cige.data.sentence import Span
from cige.errors import CigeError

WORKER = Path(__file__).with_name("lac_worker.py")
BATCH = 32
JIEBA = {"nr": "PER", "nrt": "PER", "nrfg": "PER", "ns": "LOC", "nt": "ORG"}
LAC = {"PER": "PER", "LOC": "LOC", "ORG": "ORG", "nr": "PER", "ns": "LOC", "nt": "ORG"}
HANLP = {"PERSON": "PER", "LOCATION": "LOC", "ORGANIZATION": "ORG"}
LTP_TYPES = {"Nh": "PER", "Ns": "LOC", "Ni": "ORG"}
SPACY = {"PERSON": "PER", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "ORG": "ORG"}
GLINER = {"person": "PER", "location": "LOC", "organization": "ORG"}


class Program(Protocol):
    name: str

    def read(self, texts: Sequence[str], batch_size: int = BATCH) -> list[list[Span]]: ...

    def processor_seconds(self) -> float:
        """That it has used so far, in whatever process it runs."""
        return time.process_time()


class Cige(Program):
    """A model of this project, its types as coarse as it has them."""

    def __init__(self, model: str | None = None, *, name: str = "cige"):
        from cige.api import load

        self.name, self._ner = name, load(model)

    def read(self, texts: Sequence[str], batch_size: int = BATCH) -> list[list[Span]]:
        found = self._ner.pipe(texts, types="coarse", batch_size=batch_size)
        return [[Span(e.start, e.end, e.label) for e in entities] for entities in found]


class Jieba(Program):
    """jieba.posseg: words with parts of speech, of which nr, ns and nt are names."""

    name = "jieba"

    def __init__(self) -> None:
        from jieba import posseg

        self._cut = posseg.cut
        list(self._cut("预热"))

    def read(self, texts: Sequence[str], batch_size: int = BATCH) -> list[list[Span]]:
        return [spans_of_words(((w.word, w.flag) for w in self._cut(text)), JIEBA) for text in texts]


class Lac(Program):
    """Baidu's LAC 2.1.2, by the interpreter that has it (lac_worker.py says how that is made)."""

    name = "LAC"

    def __init__(self, python: str):
        self._process = subprocess.Popen(
            [python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self._seconds = 0.0
        self.read(["预热"])

    def read(self, texts: Sequence[str], batch_size: int = BATCH) -> list[list[Span]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        line = ""
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([list(texts), batch_size]) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise CigeError(f"LAC's worker ended with code {self._process.wait()}; what it said stands above")
        found, self._seconds = json.loads(line)
        return [spans_of_words(zip(*words, strict=True), LAC) for words in found]

    def processor_seconds(self) -> float:
        return self._seconds


class HanLP(Program):
    """HanLP 2.1's multi-task models, such as CLOSE_TOK_POS_NER_SRL_DEP_SDP_CON_ELECTRA_SMALL_ZH (or a folder)."""

    name = "HanLP"

    def __init__(self, model: str):
        import hanlp

        self._model = hanlp.load(getattr(hanlp.pretrained.mtl, model, model))

    def read(self, texts: Sequence[str], batch_size: int = BATCH) -> list[list[Span]]:
        found: list[list[Span]] = []
        for some in batches(texts, batch_size):
            document = self._model(some, tasks="ner/msra")
            for text, tokens, entities in zip(some, document["tok/fine"], document["ner/msra"], strict=True):
                places = list(located(text, tokens))
                own = [(places[first][0], places[last - 1][1], kind) for _, kind, first, last in entities]
                found.append(spans_of(own, HANLP))
        return found


class Ltp(Program):
    """LTP 4.2, such as LTP/small (or a folder)."""

    name = "LTP"

    def __init__(self, model: str):
        from ltp import LTP

        self._model = LTP(model)

    def read(self, texts: Sequence[str], batch_size: int = BATCH) -> list[list[Span]]:
        found: list[list[Span]] = []
        for some in batches(texts, batch_size):
            for text, own in zip(some, self._model.pipeline(some, tasks=["cws", "ner"]).ner, strict=True):
                places = zip(located(text, [name for _, name, *_ in own]), own, strict=True)
                found.append(spans_of([(*place, kind) for place, (kind, *_) in places], LTP_TYPES))
        return found


class SpaCy(Program):
    """A spaCy pipeline for Chinese, such as zh_core_web_sm (or a folder)."""

    name = "spaCy"

    def __init__(self, model: str):
        import spacy

        self._model = spacy.load(model)

    def read(self, texts: Sequence[str], batch_size: int = BATCH) -> list[list[Span]]:
        documents = self._model.pipe(texts, batch_size=batch_size)
        return [spans_of([(e.start_char, e.end_char, e.label_) for e in doc.ents], SPACY) for doc in documents]


class Gliner(Program):
    """A multilingual GLiNER, such as urchade/gliner_multi-v2.1 (or a folder), asked for the three types in English."""

    name = "GLiNER"

    def __init__(self, model: str):
        from gliner import GLiNER

        self._model = GLiNER.from_pretrained(model)

    def read(self, texts: Sequence[str], batch_size: int = BATCH) -> list[list[Span]]:
        answers = (self._model.predict_entities(text, list(GLINER), threshold=0.5) for text in texts)
        return [spans_of([(e["start"], e["end"], e["label"]) for e in found], GLINER) for found in answers]


def spans_of(entities: Iterable[tuple[int, int, str]], types: Mapping[str, str]) -> list[Span]:
    """Those whose kind is a type."""
    return [Span(start, end, types[kind]) for start, end, kind in entities if kind in types]


def spans_of_words(words: Iterable[tuple[str, str]], types: Mapping[str, str]) -> list[Span]:
    """Spans of the words of a whole text, those whose tag is a type."""
    start, found = 0, []
    for word, tag in words:
        found.append((start, start + len(word), tag))
        start += len(word)
    return spans_of(found, types)


def located(text: str, parts: Iterable[str]) -> Iterator[tuple[int, int]]:
    """[start, end) of parts of a text in their order, whatever was left out between them."""
    end = 0
    for part in parts:
        start = text.find(part, end)
        if start < 0:
            raise CigeError(f"given {part!r}, which is not in what is left of {text[:40]!r}...; the program changed it")
        end = start + len(part)
        yield start, end


def batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    """So many texts at a time."""
    return (list(texts[first : first + size]) for first in range(0, len(texts), size))
