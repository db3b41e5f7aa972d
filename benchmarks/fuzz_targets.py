"""What is given damaged input by `bench_fuzz`: every reader of files, and the matcher; and sound files to damage.

A target takes bytes and ends well, or with a CigeError, which is how a user learns what is wrong. Anything else that it
raises is a fault of cige, and so is an answer that breaks what the function promises.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import fuzz_odd_files
import numpy as np

from cige.data.documents.document import Document, ReadingOptions
from cige.data.documents.formats import FORMATS, read_documents, write_documents
from cige.data.reading import read_sentences
from cige.data.sentence import Span
from cige.errors import CigeError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.report import ReportBuilder
from cige.lexicon.vector_files import open_vectors
from cige.lexicon.words_file import FORMATS as WORD_FORMATS
from cige.lexicon.words_file import read_words
from cige.text.normalize import normalize

MEMORY = Path("/dev/shm")  # files that are written thousands of times a second
TEXT = "昨天阿拉善贺兰草宣布，林晓岚抵达南京市😀。"
DOCUMENTS = (
    Document(TEXT, (Span(2, 7, "ORG"), Span(11, 14, "PER"), Span(16, 19, "LOC")), {"id": 7}),
    Document("第二段：ABC 公司，2024 年。", (Span(4, 10, "ORG"),)),
)


@dataclass(frozen=True)
class Target:
    """Something that reads.

    Attributes:
        read: called with the bytes.
        seeds: sound input, and some that is known to be odd.
        made: makes odd input of the right form; None if there is only damage by chance.
    """

    read: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    made: Callable[[random.Random], bytes] | None = None


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory, where there is such a thing."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def targets(folder: Path, *, large: bool = False) -> dict[str, Target]:
    """All targets by name; they write their input to a file in `folder`.

    Args:
        large: whether small files with large contents are among the seeds, which take seconds to make.
    """
    found = {f"documents-{name}": _documents(name, folder) for name in FORMATS if _can_be_read(name)}
    found["documents-auto"] = _documents("auto", folder)
    for name in ("documents-parquet", "documents-docbin"):
        if large and name in found:
            found[name] = replace(found[name], seeds=(*found[name].seeds, _large(name)))
    for form in ("auto", "bmes", "bio", "jsonl", "cluener"):
        found[f"sentences-{form}"] = _sentences(form, folder)
    for form in WORD_FORMATS:
        found[f"words-{form}"] = _words(form, folder)
    found["vectors"] = _vectors(folder)
    sound = folder / "sound-lexicon"
    made = Lexicon.from_words(["南京", "南京市", "市长", "长江大桥"], counts=[4, 3, 2, 1])
    made.add("阿拉善贺兰草", label="COMPANY", mode="force")
    made.save(sound)
    for path in sorted(sound.iterdir()):
        found[f"lexicon-{path.name}"] = _lexicon(path)
    found["changes"] = _changes(folder)
    found["matcher"] = Target(_match, tuple(f"{TEXT}\n南京\n林晓岚\nABC {k}".encode() for k in range(3)))
    return found


SPACY_TOKENS = [{"orth": "南京", "ner": "B-LOC"}, {"orth": "市", "ner": "L-LOC"}]
MOST_TOLD = 2000  # characters of a message, however long what it is about
ODD_TEXTS = (b"", b"\xef\xbb\xbf", b"\x00", b"\xff\xfe\x00", b"\n\n\n", b"9" * 5000 + b" 3\n", "\u2028\u0085".encode())


def _can_be_read(name: str) -> bool:
    needed = {"parquet": "pyarrow", "docbin": "spacy"}.get(name)
    return needed is None or importlib.util.find_spec(needed) is not None


def _documents(name: str, folder: Path) -> Target:
    path = folder / ("brat" if name == "brat" else f"fuzzed.{name}")

    def read(content: bytes) -> None:
        if name == "brat":
            path.mkdir(exist_ok=True)
            text, _, notes = content.partition(b"\x1e")  # one input for two files
            (path / "a.txt").write_bytes(text)
            (path / "a.ann").write_bytes(notes)
        else:
            path.write_bytes(content)
        forms = (name, "hugging-face") if name == "parquet" else (name,)
        for form in forms:
            try:
                found = read_documents(path, format=form, options=ReadingOptions(tag_names=("O", "B-A", "I-A")))
            except CigeError as told:
                if form == forms[-1]:
                    raise
                _check_told(told)
                continue
            _check_documents(found, folder)

    sound = _written(name, folder)
    make = fuzz_odd_files.MADE.get(name)
    return Target(read, (*sound, *ODD_TEXTS), None if make is None else lambda rng: make(rng.choice(sound), rng))


def _check_documents(documents: list[Document], folder: Path) -> None:
    """Their spans fit, and whatever is in them can be written, or is refused."""
    for document in documents:
        assert isinstance(document.text, str)
        for span in document.spans:
            assert 0 <= span.start < span.end <= len(document.text), (span, document.text)
            assert isinstance(span.label, str) and span.label
    for form in ("jsonl", "csv", *(("parquet",) if _can_be_read("parquet") else ())):
        try:
            write_documents(folder / f"written.{form}", documents, format=form)
        except CigeError as told:
            _check_told(told)
            continue
        try:
            again = read_documents(folder / f"written.{form}", format=form)
        except CigeError as told:
            raise AssertionError(f"what was written as {form} cannot be read: {told}") from told
        assert [x.text for x in again] == [x.text for x in documents]
        assert [x.spans for x in again] == [x.spans for x in documents]


@cache
def _written(name: str, folder: Path) -> tuple[bytes, ...]:
    """Sound files of a format: as cige writes it, and by hand where it only reads."""
    by_hand = {
        "txt": [TEXT.encode()],
        "hugging-face": [json.dumps({"tokens": ["南", "京"], "ner_tags": [1, 2]}).encode()],
        "spacy-json": [
            json.dumps([[TEXT, {"entities": [[2, 7, "ORG"]]}]]).encode(),
            json.dumps([{"paragraphs": [{"raw": "南京 市", "sentences": [{"tokens": SPACY_TOKENS}]}]}]).encode(),
            json.dumps({"text": TEXT, "ents": [{"start": 2, "end": 7, "label": "ORG"}], "tokens": []}).encode(),
        ],
        "brat": [
            "南京市\x1eT1\tLOC 0 3\t南京市\nA1\tX T1\n".encode(),
            "南京\n市\x1eT1\tLOC 0 2;3 4\t南京 市\n".encode(),
        ],
    }
    if name == "docbin":
        return (fuzz_odd_files.docbin(),)
    if name in by_hand:
        return tuple(by_hand[name])
    names = ["jsonl", "bmes", "csv", "doccano", "label-studio"] if name == "auto" else [name]
    made = []
    for one in names:
        path = folder / f"seed-{one}"
        write_documents(path, DOCUMENTS, format=one)
        made.append(path.read_bytes())
        path.unlink()
    return tuple(made)


def _large(name: str) -> bytes:
    """A small file with large contents."""
    return fuzz_odd_files.bomb(512 << 20) if name == "documents-docbin" else fuzz_odd_files.many_rows(40_000_000)


def _sentences(form: str, folder: Path) -> Target:
    path = folder / f"sentences.{form}"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        for repair in (False, True):
            try:
                found = read_sentences(path, format=form, repair=repair)
            except CigeError:
                continue
            for sentence in found:
                for span in sentence.spans:
                    assert 0 <= span.start < span.end <= len(sentence.text), (span, sentence.text)

    return Target(read, (*_written("jsonl", folder), *_written("bmes", folder), *_written("bio", folder), *ODD_TEXTS))


def _words(form: str, folder: Path) -> Target:
    path = folder / f"words.{form}"
    seeds = (
        "# 词表\n南京市\n长江大桥\n南京市\n一\n".encode(),
        "南京市\t12\n长江大桥\t3\n".encode(),
        "南京市 12 ns\n长江大桥 3 ns\n".encode(),
        "word\tlabel\tmode\n阿拉善贺兰草\tCOMPANY\tforce\n计划\t\tblock\n".encode(),
        'word,label,mode\n"阿拉善,贺兰草",COMPANY,force\n'.encode(),
        '{"word": "阿拉善贺兰草", "label": "COMPANY", "mode": "force"}\n{"word": "计划"}\n'.encode(),
        "2 3\n南京市 0.1 0.2 0.3\n长江 1 2 3\n".encode(),
        *ODD_TEXTS,
    )

    def read(content: bytes) -> None:
        path.write_bytes(content)
        for spaces in (False, True):
            try:
                found = read_words(path, format=form, spaces=spaces)
            except CigeError:
                continue
            assert len(set(found.words)) == len(found.words)
            assert found.counts is None or len(found.counts) == len(found.words)
            assert str(found.report)
        lexicon = Lexicon.from_words(["南京"])
        report = lexicon.add_file(path, format=form)
        str(report)
        lexicon.match(TEXT)

    return Target(read, seeds)


def _vectors(folder: Path) -> Target:
    path = folder / "vectors.bin"
    rows = np.arange(6, dtype="<f4").reshape(2, 3)
    binary = b"2 3\n" + b"".join(
        word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(("南京", "长江"), rows, strict=True)
    )
    text = "2 3\n南京 0.1 0.2 0.3\n长江 1e3 -2 nan\n".encode()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        found = open_vectors(path)
        for block in found.blocks(ReportBuilder(source="fuzzed", format=found.format)):
            assert block.vectors.shape == (len(block.words), found.width) and np.isfinite(block.vectors).all()

    return Target(read, (binary, text, text[4:], b"99999999999 300\n" + binary[4:], *ODD_TEXTS))


def _lexicon(sound: Path) -> Target:
    """One file of a lexicon folder is damaged, and the manifest knows of it: else its checksum tells at once."""
    copy = sound.parent.with_name(f"lexicon-{sound.name}")
    odd = [sound.read_bytes().replace(b"fingerprint", b"fingerprin\\u0074s"), sound.read_bytes().replace(b"true", b"7")]
    shutil.copytree(sound.parent, copy)

    def read(content: bytes) -> None:
        (copy / sound.name).write_bytes(content)
        if sound.name != "manifest.json":
            manifest = json.loads((sound.parent / "manifest.json").read_text(encoding="utf-8"))
            manifest["files"][sound.name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        lexicon = Lexicon.load(copy)
        for start, end, number in lexicon.match(TEXT):
            assert normalize(TEXT)[start:end] == lexicon.word(number)

    return Target(read, (sound.read_bytes(), *ODD_TEXTS, b"{}", b"[]", b"null", *odd))


def _changes(folder: Path) -> Target:
    from cige.serving.word_store import WordStore

    path = folder / "changes.json"
    sound = {
        "version": 3,
        "added": ["甲甲", "乙"],
        "removed": ["南京"],
        "labels": {"乙": "X"},
        "modes": {"乙": "force"},
    }
    start = Lexicon.from_words(["南京", "市长"])

    def read(content: bytes) -> None:
        path.write_bytes(content)
        WordStore([start], path).current().lexicons[0].match(TEXT)

    return Target(read, (json.dumps(sound).encode(), *ODD_TEXTS, b"{}", b"[]", b'{"version": 1e999}'))


def _match(content: bytes) -> None:
    """The first line is the text, the others are words: matches are as a search for each word finds them."""
    text, *words = content.decode("utf-8", "surrogatepass" if b"\xed" in content else "replace").split("\n")
    try:
        lexicon = Lexicon.from_words(words[:1])
        lexicon.add(*words[1:])
    except CigeError:
        return
    shown = normalize(text)
    known = {normalize(word) for word in words if normalize(word) in lexicon}
    expected = {(k, k + len(word)) for word in known for k in range(len(shown)) if word and shown.startswith(word, k)}
    found = {(int(start), int(end)) for start, end, _ in lexicon.match(text)}
    assert found == expected, (text, sorted(known), found ^ expected)


def run(target: Target, content: bytes) -> None:
    """Give a target some input; raises what only a fault of cige raises."""
    try:
        target.read(content)
    except CigeError as told:
        _check_told(told)
    except UnicodeDecodeError:
        if target.read is not _match:  # bytes that are no text are no input of the matcher
            raise


def _check_told(told: CigeError) -> None:
    lines = str(told).splitlines()
    assert len(lines) == 1 and lines[0].strip(), f"expected one line, found {lines}"
    assert len(lines[0]) < MOST_TOLD, f"a message of {len(lines[0]):,} characters"
