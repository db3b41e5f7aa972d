"""Texts of the command line: lines of files, and documents of JSON files."""

import gzip
import json
import lzma
import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from tiny import TEXT

from cige.commands.texts import sentences_of, texts_of, whole_text_of
from cige.data.documents import Document, write_documents
from cige.data.sentence import Span
from cige.errors import DataError

TEXTS = ["张桂梅在云南。\n她教书。", "没有名字。"]
DOCUMENTS = [Document(TEXTS[0], (Span(0, 3, "PER"), Span(4, 6, "LOC"))), Document(TEXTS[1])]
TOKENS = [{"tokens": list(text), "ner_tags": ["O"] * len(text)} for text in TEXTS]
PAIRS = [[text, {"entities": []}] for text in TEXTS]
PARAGRAPHS = [{"id": 0, "paragraphs": [{"raw": text, "entities": []} for text in TEXTS]}]
UNLABELLED = [{"data": {"text": text}} for text in TEXTS]


@pytest.mark.parametrize("format", ["label-studio", "doccano", "displacy", "jsonl"])
@pytest.mark.parametrize("name", ["tasks.JSON", "tasks.jsonl"])
def test_a_file_of_json_that_a_tool_wrote_is_read_as_documents(tmp_path, format, name):
    path = tmp_path / name
    write_documents(path, DOCUMENTS, format=format)
    assert list(texts_of(str(path))) == TEXTS
    assert list(sentences_of(str(path))) == "\n".join(TEXTS).split("\n")
    assert whole_text_of(str(path)) == "\n".join(TEXTS)


@pytest.mark.parametrize("value", [TOKENS, PAIRS, PARAGRAPHS, UNLABELLED, [{"text": text} for text in TEXTS]])
@pytest.mark.parametrize("indent", [None, 1])
def test_json_of_other_forms_is_read_as_documents(tmp_path, value, indent):
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(value, ensure_ascii=False, indent=indent), encoding="utf-8")
    assert list(texts_of(str(path))) == TEXTS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("张桂梅在云南。\n", 'texts.json: a file of JSON is read as documents: objects with "text", tasks of Label'),
        ("", "texts.json: a file of JSON is read as documents"),
        ("{", "texts.json: a file of JSON is read as documents"),
        (json.dumps(TEXTS), "texts.json: a file of JSON is read as documents"),
        (
            '{"name": "cige"}',
            "line 1: expected a string under 'text'; it has 'name' .read as jsonl; a file of JSON is",
        ),
        (
            '[{"data": {"image": 3}}]',
            "task 1: expected a string under 'text'; .* .read as label-studio; a file of JSON",
        ),
    ],
)
def test_other_json_is_told_what_is_read(tmp_path, content, message):
    (tmp_path / "texts.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(texts_of(str(tmp_path / "texts.json")))


@pytest.mark.parametrize("name", ["texts.jsonl", "texts.ndjson", "TEXTS.JSONL"])
def test_json_lines_have_texts_and_a_txt_file_has_lines(tmp_path, name):
    lines = [json.dumps({"id": n, "text": text}, ensure_ascii=n > 0) for n, text in enumerate(TEXTS)]
    for path in (tmp_path / name, tmp_path / "texts.txt"):
        path.write_text("\n\n".join(lines), encoding="utf-8")
    assert list(texts_of(str(tmp_path / name))) == TEXTS
    assert list(texts_of(str(tmp_path / "texts.txt"))) == [lines[0], "", lines[1]]
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    assert list(texts_of(str(tmp_path / f"{name}.gz"))) == TEXTS


def test_json_lines_are_read_one_by_one(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "李明在北京。"}\n{"text": 3}\n', encoding="utf-8")
    texts = texts_of(str(path))
    assert next(texts) == "李明在北京。"
    with pytest.raises(DataError, match=r'texts\.jsonl, line 2: expected an object of JSON with a string under "text"'):
        next(texts)


@pytest.mark.parametrize("content", ["张桂梅在云南。\n", "", '{"name": "cige"}\n', "[1]\n", "3\n"])
def test_other_json_lines_are_told_what_is_read(tmp_path, content):
    (tmp_path / "texts.jsonl").write_text(content, encoding="utf-8")
    if not content:  # as an empty file of lines
        assert not list(texts_of(str(tmp_path / "texts.jsonl")))
        return
    with pytest.raises(DataError, match=r"texts\.jsonl.* a file of JSON is read as documents: objects with"):
        list(texts_of(str(tmp_path / "texts.jsonl")))


@pytest.mark.parametrize("verb", ["predict", "explain", "evaluate", "lexicon"])
def test_utf_16_is_named(run, model, tmp_path, verb):
    path = tmp_path / "texts.txt"
    for content in ("李明在北京\n", "\ufeff李明 O\n"):
        path.write_bytes(content.encode("utf-16-le" if content[0] == "\ufeff" else "utf-16"))
        argv = {"evaluate": ["--data", path], "lexicon": ["match", TEXT, "--lexicon", path]}.get(verb, [path])
        code, _, err = run(verb, *argv, *([] if verb == "lexicon" else ["--model", model]))
        assert code == 2 and "line 1" in err and "UTF-16" in err and "iconv -f UTF-16" in err


@contextmanager
def pipe(path: Path, content: str):
    """A path with a pipe that has this content, as `<(...)` has in a shell."""
    reader, writer = os.pipe()
    os.write(writer, content.encode())
    os.close(writer)
    path.symlink_to(f"/dev/fd/{reader}")
    try:
        yield str(path)
    finally:
        os.close(reader)


def test_a_pipe_has_lines_and_is_not_the_text_itself(tmp_path):
    with pipe(tmp_path / "a", "李明\n北京\n") as path:
        assert list(texts_of(path)) == ["李明", "北京"]
    with pipe(tmp_path / "b", "李明\n北京\n") as path:
        assert whole_text_of(path) == "李明\n北京"


@pytest.mark.parametrize("argv", [["evaluate", "--data"], ["convert"], ["data", "stats"], ["suggest"], ["predict"]])
def test_a_pipe_that_would_be_read_twice_is_refused(run, tmp_path, argv):
    """Its format is detected first, and then nothing is left of it."""
    more = {"convert": [tmp_path / "out.jsonl"], "suggest": [tmp_path / "out.jsonl"]}.get(argv[0], [])
    with pipe(tmp_path / "pipe.json", '{"text": "李明在北京。", "entities": []}\n') as path:
        code, _, err = run(*argv, path, *more)
    assert code == 2 and "a pipe or device; expected a file" in err
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(("compress", "suffix"), [(gzip.compress, ".gz"), (lzma.compress, ".xz")])
def test_compressed_files_are_read(tmp_path, compress, suffix):
    path = tmp_path / f"texts.txt{suffix}"
    path.write_bytes(compress("\ufeff李明\r\n\n北京".encode()))
    assert list(texts_of(str(path))) == ["李明", "", "北京"]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="damaged or truncated"):
        list(texts_of(str(path)))
    documents = tmp_path / f"tasks.json{suffix}"
    documents.write_bytes(compress(json.dumps(UNLABELLED).encode()))
    assert list(texts_of(str(documents))) == TEXTS
