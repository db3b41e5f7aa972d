"""The programs that are compared with cige: each finds PER, LOC and ORG in texts, by its own public interface.

A program loads what it needs when it is made, so that no loading is in its time.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cige.data.sentence import Span
from cige.errors import CigeError

LAC_WORKER = Path(__file__).with_name("lac_worker.py")
PROGRAM_WORKER = "benchmarks.parts.program_worker"
BATCH = 32
JIEBA = {"nr": "PER", "nrt": "PER", "nrfg": "PER", "ns": "LOC", "nt": "ORG"}
LAC = {"PER": "PER", "LOC": "LOC", "ORG": "ORG", "nr": "PER", "ns": "LOC", "nt": "ORG"}
HANLP = {"PERSON": "PER", "LOCATION": "LOC", "ORGANIZATION": "ORG"}
LTP = {"Nh": "PER", "Ns": "LOC", "Ni": "ORG"}
SPACY = {"PERSON": "PER", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "ORG": "ORG"}
GLINER = {"person": "PER", "location": "LOC", "organization": "ORG"}
Found = list[list[Span]]


@dataclass
class Program:
    """What a table calls it, and what finds the spans of each text, so many texts at a time."""

    name: str
    find: Callable[[Sequence[str], int], Found]
    processor_seconds: Callable[[], float] = time.process_time  # used so far, in whatever process it runs

    def read(self, texts: Sequence[str], batch_size: int = BATCH) -> Found:
        return self.find(texts, batch_size)


def cige(model: str | None = None) -> Program:
    """A model of this project, its types as coarse as it has them."""
    from cige.api import load

    ner = load(model)

    def find(texts: Sequence[str], batch_size: int) -> Found:
        found = ner.pipe(texts, types="coarse", batch_size=batch_size)
        return [[Span(e.start, e.end, e.label) for e in entities] for entities in found]

    return Program("cige", find)


def jieba() -> Program:
    """jieba.posseg: words with parts of speech, of which nr, ns and nt are names; it reads text by text."""
    from jieba import posseg

    list(posseg.cut("预热"))
    return Program(
        "jieba", lambda texts, _: [spans_of_words(((w.word, w.flag) for w in posseg.cut(x)), JIEBA) for x in texts]
    )


def lac(python: str) -> Program:
    """Baidu's LAC 2.1.2, by the interpreter that has it (lac_worker.py says how that is made)."""
    return in_worker("LAC", [python, str(LAC_WORKER)], lambda words: spans_of_words(zip(*words, strict=True), LAC))


def alone(program: str, *arguments: str, name: str | None = None) -> Program:
    """The program that a function of this module makes, in a process of its own (see program_worker.py)."""
    command = [sys.executable, "-m", PROGRAM_WORKER, program, *arguments]
    where = {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}  # this package may be in the current folder
    return in_worker(name or program, command, lambda spans: [Span(*span) for span in spans], where)


def sorted_by_length(program: Program) -> Program:
    """The program, given longer texts behind shorter ones, so that its batches have little padding."""

    def find(texts: Sequence[str], batch_size: int) -> Found:
        order = sorted(range(len(texts)), key=lambda k: len(texts[k]))
        found: Found = [[] for _ in texts]
        for k, spans in zip(order, program.find([texts[k] for k in order], batch_size), strict=True):
            found[k] = spans
        return found

    return Program(f"{program.name}, sorted", find, program.processor_seconds)


def in_worker(
    name: str,
    command: Sequence[str],
    spans_of_answer: Callable[[Any], list[Span]],
    environment: Mapping[str, str] | None = None,
) -> Program:
    """A program that a process runs: it reads [texts, batch size] and writes [an answer for each text, seconds]."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        bufsize=1,
        env=os.environ | (environment or {}),
    )
    assert process.stdin is not None and process.stdout is not None
    given, answers = process.stdin, process.stdout
    used = [0.0]

    def find(texts: Sequence[str], batch_size: int) -> Found:
        line = ""
        with suppress(BrokenPipeError):
            given.write(json.dumps([list(texts), batch_size]) + "\n")
            given.flush()
            line = answers.readline()
        if not line:
            raise CigeError(f"{name}'s worker ended with code {process.wait()}; what it said stands above")
        found, used[0] = json.loads(line)
        return [spans_of_answer(answer) for answer in found]

    find(["预热"], BATCH)
    return Program(name, find, lambda: used[0])


def hanlp(model: str) -> Program:
    """HanLP 2.1's multi-task models, such as CLOSE_TOK_POS_NER_SRL_DEP_SDP_CON_ELECTRA_SMALL_ZH (or a folder)."""
    import hanlp

    network = hanlp.load(getattr(hanlp.pretrained.mtl, model, model))

    def find(texts: Sequence[str], batch_size: int) -> Found:
        found: Found = []
        for some in batches(texts, batch_size):
            document = network(some, tasks="ner/msra")
            for text, tokens, entities in zip(some, document["tok/fine"], document["ner/msra"], strict=True):
                places = list(located(text, tokens))
                own = [(places[first][0], places[last - 1][1], kind) for _, kind, first, last in entities]
                found.append(spans_of(own, HANLP))
        return found

    return Program("HanLP", find)


def ltp(model: str) -> Program:
    """LTP 4.2, such as LTP/small (or a folder)."""
    import ltp

    network = ltp.LTP(model)

    def find(texts: Sequence[str], batch_size: int) -> Found:
        found: Found = []
        for some in batches(texts, batch_size):
            for text, own in zip(some, network.pipeline(some, tasks=["cws", "ner"]).ner, strict=True):
                places = zip(located(text, [name for _, name, *_ in own]), own, strict=True)
                found.append(spans_of([(*place, kind) for place, (kind, *_) in places], LTP))
        return found

    return Program("LTP", find)


def spacy(model: str) -> Program:
    """A spaCy pipeline for Chinese, such as zh_core_web_sm (or a folder)."""
    import spacy

    pipeline = spacy.load(model)

    def find(texts: Sequence[str], batch_size: int) -> Found:
        documents = pipeline.pipe(texts, batch_size=batch_size)
        return [spans_of([(e.start_char, e.end_char, e.label_) for e in doc.ents], SPACY) for doc in documents]

    return Program("spaCy", find)


def gliner(model: str) -> Program:
    """A multilingual GLiNER, such as urchade/gliner_multi-v2.1 (or a folder), asked for the three types in English."""
    import gliner

    network = gliner.GLiNER.from_pretrained(model)

    def find(texts: Sequence[str], _: int) -> Found:
        answers = (network.predict_entities(text, list(GLINER), threshold=0.5) for text in texts)
        return [spans_of([(e["start"], e["end"], e["label"]) for e in found], GLINER) for found in answers]

    return Program("GLiNER", find)


def spans_of(entities: Iterable[tuple[Any, ...]], types: Mapping[str, str]) -> list[Span]:
    """Those of (start, end, kind) whose kind is a type."""
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
