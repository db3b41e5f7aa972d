"""What is given damaged input by `fuzz`: every reader of files, and the matcher; and sound files to damage.

A target takes bytes and ends well, or with a CigeError, which is how a user learns what is wrong. Anything else that it
raises is a fault of cige, and so is an answer that breaks what the function promises.
"""

import importlib.util
import json
import random
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.parts import odd_files
from benchmarks.parts.folder_changes import MANIFEST, sign
from benchmarks.parts.odd_files import TEXT
from benchmarks.parts.odd_texts import check_message
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

DOCUMENTS = (
    Document(TEXT, (Span(2, 7, "ORG"), Span(11, 14, "PER"), Span(16, 19, "LOC")), {"id": 7}),
    Document("第二段：ABC 公司，2024 年。", (Span(4, 10, "ORG"),)),
)
SPACY_TOKENS = [{"orth": "南京", "ner": "B-LOC"}, {"orth": "市", "ner": "L-LOC"}]
ODD_TEXTS = (b"", b"\xef\xbb\xbf", b"\x00", b"\xff\xfe\x00", b"\n\n\n", b"9" * 5000 + b" 3\n", "\u2028\u0085".encode())
WRITTEN_BY_HAND = {  # formats that cige only reads
    "txt": [TEXT],
    "hugging-face": [json.dumps({"tokens": ["南", "京"], "ner_tags": [1, 2]})],
    "spacy-json": [
        json.dumps([[TEXT, {"entities": [[2, 7, "ORG"]]}]]),
        json.dumps([{"paragraphs": [{"raw": "南京 市", "sentences": [{"tokens": SPACY_TOKENS}]}]}]),
        json.dumps({"text": TEXT, "ents": [{"start": 2, "end": 7, "label": "ORG"}], "tokens": []}),
    ],
    "brat": ["南京市\x1eT1\tLOC 0 3\t南京市\nA1\tX T1\n", "南京\n市\x1eT1\tLOC 0 2;3 4\t南京 市\n"],
}
WORD_LISTS = (
    "# 词表\n南京市\n长江大桥\n南京市\n一\n",
    "南京市\t12\n长江大桥\t3\n",
    "南京市 12 ns\n长江大桥 3 ns\n",
    "word\tlabel\tmode\n阿拉善贺兰草\tCOMPANY\tforce\n计划\t\tblock\n",
    'word,label,mode\n"阿拉善,贺兰草",COMPANY,force\n',
    '{"word": "阿拉善贺兰草", "label": "COMPANY", "mode": "force"}\n{"word": "计划"}\n',
    "2 3\n南京市 0.1 0.2 0.3\n长江 1 2 3\n",
)


class Target(NamedTuple):
    """Something that reads.

    Attributes:
        read: called with the bytes.
        seeds: sound input, and some that is known to be odd.
        made: makes odd input of the right form; None if there is only damage by chance.
    """

    read: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    made: Callable[[random.Random], bytes] | None = None


def targets(folder: Path, *, large: bool = False) -> dict[str, Target]:
    """All targets by name; they write their input to a file in `folder`.

    Args:
        large: whether small files with large contents are among the seeds, which take seconds to make.
    """
    found = {f"documents-{name}": _documents(name, folder) for name in (*FORMATS, "auto") if _can_be_read(name)}
    big = {"docbin": lambda: odd_files.bomb(512 << 20), "parquet": lambda: odd_files.many_rows(40_000_000)}
    for name in big if large else ():
        if (key := f"documents-{name}") in found:
            found[key] = found[key]._replace(seeds=(*found[key].seeds, big[name]()))
    found |= {f"sentences-{form}": _sentences(form, folder) for form in ("auto", "bmes", "bio", "jsonl", "cluener")}
    found |= {f"words-{form}": _words(form, folder) for form in WORD_FORMATS}
    found["vectors"] = _vectors(folder / "vectors.bin")
    made = Lexicon.from_words(["南京", "南京市", "市长", "长江大桥"], counts=[4, 3, 2, 1])
    made.add("阿拉善贺兰草", label="COMPANY", mode="force")
    made.save(folder / "sound-lexicon")
    found |= {f"lexicon-{path.name}": _lexicon(path) for path in sorted((folder / "sound-lexicon").iterdir())}
    found["changes"] = _changes(folder / "changes.json")
    found["matcher"] = Target(_match, tuple(f"{TEXT}\n南京\n林晓岚\nABC {k}".encode() for k in range(3)))
    return found


def run(target: Target, content: bytes) -> None:
    """Give a target some input; raises what only a fault of cige raises."""
    try:
        target.read(content)
    except CigeError as told:
        check_message(told)
    except UnicodeDecodeError:
        if target.read is not _match:  # bytes that are no text are no input of the matcher
            raise


def _can_be_read(name: str) -> bool:
    needed = {"parquet": "pyarrow", "docbin": "spacy"}.get(name)
    return needed is None or importlib.util.find_spec(needed) is not None


def _of_file(path: Path, read: Callable[[], Any], seeds: Iterable[bytes | str]) -> Target:
    """A target that reads a file with what it is given."""

    def given(content: bytes) -> None:
        path.write_bytes(content)
        read()

    return Target(given, (*(seed.encode() if isinstance(seed, str) else seed for seed in seeds), *ODD_TEXTS))


def _check_spans(text: str, spans: Iterable[Span]) -> None:
    for span in spans:
        assert 0 <= span.start < span.end <= len(text), (span, text)
        assert isinstance(span.label, str) and span.label


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
                check_message(told)
                continue
            _check_documents(found, folder)

    sound = _written(name, folder)
    make = odd_files.MADE.get(name)
    return Target(read, (*sound, *ODD_TEXTS), None if make is None else lambda rng: make(rng.choice(sound), rng))


def _check_documents(documents: list[Document], folder: Path) -> None:
    """Their spans fit, and whatever is in them can be written, or is refused."""
    for document in documents:
        assert isinstance(document.text, str)
        _check_spans(document.text, document.spans)
    for form in ("jsonl", "csv", *(("parquet",) if _can_be_read("parquet") else ())):
        path = folder / f"written.{form}"
        try:
            write_documents(path, documents, format=form)
        except CigeError as told:
            check_message(told)
            continue
        try:
            again = read_documents(path, format=form)
        except CigeError as told:
            raise AssertionError(f"what was written as {form} cannot be read: {told}") from told
        assert [(x.text, x.spans) for x in again] == [(x.text, x.spans) for x in documents]


@cache
def _written(name: str, folder: Path) -> tuple[bytes, ...]:
    """Sound files of a format: as cige writes it, and by hand where it only reads."""
    if name == "docbin":
        return (odd_files.docbin(),)
    if name in WRITTEN_BY_HAND:
        return tuple(x.encode() for x in WRITTEN_BY_HAND[name])
    names = ["jsonl", "bmes", "csv", "doccano", "label-studio"] if name == "auto" else [name]
    for one in names:
        write_documents(folder / f"seed-{one}", DOCUMENTS, format=one)
    return tuple((folder / f"seed-{one}").read_bytes() for one in names)


def _sentences(form: str, folder: Path) -> Target:
    path = folder / f"sentences.{form}"

    def read() -> None:
        for repair in (False, True):
            with suppress(CigeError):
                for sentence in read_sentences(path, format=form, repair=repair):
                    _check_spans(sentence.text, sentence.spans)

    return _of_file(path, read, [seed for name in ("jsonl", "bmes", "bio") for seed in _written(name, folder)])


def _words(form: str, folder: Path) -> Target:
    path = folder / f"words.{form}"

    def read() -> None:
        for spaces in (False, True):
            with suppress(CigeError):
                found = read_words(path, format=form, spaces=spaces)
                assert len(set(found.words)) == len(found.words)
                assert found.counts is None or len(found.counts) == len(found.words)
                assert str(found.report)
        lexicon = Lexicon.from_words(["南京"])
        str(lexicon.add_file(path, format=form))
        lexicon.match(TEXT)

    return _of_file(path, read, WORD_LISTS)


def _vectors(path: Path) -> Target:
    rows = zip(("南京", "长江"), np.arange(6, dtype="<f4").reshape(2, 3), strict=True)
    numbers = b"".join(word.encode() + b" " + row.tobytes() + b"\n" for word, row in rows)
    text = "2 3\n南京 0.1 0.2 0.3\n长江 1e3 -2 nan\n"

    def read() -> None:
        found = open_vectors(path)
        for block in found.blocks(ReportBuilder(source="fuzzed", format=found.format)):
            assert block.vectors.shape == (len(block.words), found.width) and np.isfinite(block.vectors).all()

    return _of_file(path, read, (b"2 3\n" + numbers, text, text[4:], b"99999999999 300\n" + numbers))


def _lexicon(sound: Path) -> Target:
    """One file of a lexicon folder is damaged, and the manifest is signed again: else a checksum tells at once."""
    copy, content = sound.parent.with_name(f"lexicon-{sound.name}"), sound.read_bytes()
    odd = content.replace(b"fingerprint", b"fingerprin\\u0074s"), content.replace(b"true", b"7")
    shutil.copytree(sound.parent, copy)

    def read() -> None:
        if sound.name != MANIFEST:
            sign(copy)
        lexicon = Lexicon.load(copy)
        for start, end, number in lexicon.match(TEXT):
            assert normalize(TEXT)[start:end] == lexicon.word(number)

    return _of_file(copy / sound.name, read, (content, "{}", "[]", "null", *odd))


def _changes(path: Path) -> Target:
    from cige.serving.word_store import WordStore

    sound: dict[str, Any] = {"version": 3, "added": ["甲甲", "乙"], "removed": ["南京"]}
    sound |= {"labels": {"乙": "X"}, "modes": {"乙": "force"}}
    start = Lexicon.from_words(["南京", "市长"])

    def read() -> None:
        WordStore([start], path).current().lexicons[0].match(TEXT)

    return _of_file(path, read, (json.dumps(sound), "{}", "[]", '{"version": 1e999}'))


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
