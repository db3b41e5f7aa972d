"""Texts of the command line: lines of files, and documents of JSON files."""

import json

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
def test_a_json_file_that_a_tool_wrote_is_read_as_documents(tmp_path, format):
    path = tmp_path / "tasks.JSON"
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
        ("张桂梅在云南。\n", 'texts.json: a .json file is read as documents: objects with "text", tasks of Label'),
        ("", "texts.json: a .json file is read as documents"),
        ("{", "texts.json: a .json file is read as documents"),
        (json.dumps(TEXTS), "texts.json: a .json file is read as documents"),
        ('{"name": "cige"}', "line 1: expected a string under 'text'; found NoneType .read as jsonl; a .json file is"),
        ('[{"data": {"image": 3}}]', "task 1: expected a string under 'text'; .* .read as label-studio; a .json file"),
    ],
)
def test_other_json_is_told_what_is_read(tmp_path, content, message):
    (tmp_path / "texts.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(texts_of(str(tmp_path / "texts.json")))


def test_json_lines_are_lines(tmp_path):
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in TEXTS]
    for name in ("texts.jsonl", "texts.txt"):
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
        assert list(texts_of(str(tmp_path / name))) == lines


@pytest.mark.parametrize("verb", ["predict", "explain", "evaluate", "lexicon"])
def test_utf_16_is_named(run, model, tmp_path, verb):
    path = tmp_path / "texts.txt"
    for content in ("李明在北京\n", "\ufeff李明 O\n"):
        path.write_bytes(content.encode("utf-16-le" if content[0] == "\ufeff" else "utf-16"))
        argv = {"evaluate": ["--data", path], "lexicon": ["match", TEXT, "--lexicon", path]}.get(verb, [path])
        code, _, err = run(verb, *argv, *([] if verb == "lexicon" else ["--model", model]))
        assert code == 2 and "line 1" in err and "UTF-16" in err and "iconv -f UTF-16" in err
