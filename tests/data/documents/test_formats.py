"""Files as other tools write them, told apart by their contents, and what is wrong with bad ones."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
from labelled_text import HF, SPANS, TEXT
from spacy.tokens import Doc, DocBin

from cige.data import read_sentences
from cige.data.documents import FORMATS, Document, ReadingOptions, read_documents, write_documents
from cige.data.documents.document import LeftOutWarning
from cige.data.documents.formats import find_format
from cige.data.sentence import Span
from cige.errors import DataError

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
LS = {"start": 1, "end": 4, "text": "张桂梅", "labels": ["PER"]}
LS_UTF_16 = [
    {"type": "labels", "value": {"start": 2, "end": 5, "text": "张桂梅", "labels": ["PER"]}},
    {"type": "labels", "value": {"start": 6, "end": 8, "text": "云南", "labels": ["LOC"]}},
    {"type": "choices", "value": {"choices": ["x"]}},
]
FILES = {
    "doccano.jsonl": ("doccano", [{"id": 3, "text": TEXT, "label": [[1, 4, "PER"], [5, 7, "LOC"]], "Comments": []}]),
    "doccano2.jsonl": (
        "doccano",
        [
            {
                "text": TEXT,
                "entities": [
                    {"id": 1, "start_offset": 1, "end_offset": 4, "label": "PER"},
                    {"id": 2, "start_offset": 5, "end_offset": 7, "label": "LOC"},
                ],
                "relations": [],
            }
        ],
    ),
    "ls.json": ("label-studio", [{"id": 1, "data": {"body": TEXT}, "annotations": [{"result": LS_UTF_16}]}]),
    "ls_min.json": ("label-studio", [{"text": TEXT, "label": [LS, {"start": 5, "end": 7, "labels": ["LOC"]}]}]),
    "pairs.json": ("spacy-json", [[TEXT, {"entities": [[1, 4, "PER"], [5, 7, "LOC"]]}]]),
    "hf.jsonl": ("hugging-face", [HF]),
    "ours.jsonl": (
        "jsonl",
        [{"text": TEXT, "entities": [{"start": s.start, "end": s.end, "label": s.label} for s in SPANS]}],
    ),
    "cluener.json": ("cluener", [{"text": TEXT, "label": {"PER": {"张桂梅": [[1, 3]]}, "LOC": {"云南": [[5, 6]]}}}]),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_tools(tmp_path, name):
    form, values = FILES[name]
    path = tmp_path / name
    text = "".join(json.dumps(v) + "\n" for v in values) if name.endswith("jsonl") else json.dumps(values, indent=1)
    path.write_text(json.dumps(values[0]) if name == "cluener.json" else text, encoding="utf-8")
    assert find_format(path) == form
    (found,) = read_documents(path)
    assert (found.text, found.spans, found.is_labelled) == (TEXT, SPANS, True)
    assert read_sentences(path)[0].spans == SPANS  # what `cige train --data` and `cige evaluate` read


RELATED = {
    "doccano": {"text": TEXT, "entities": [], "relations": [{"id": 1, "from_id": 1, "to_id": 2, "type": "in"}]},
    "label-studio": {"data": {"text": TEXT}, "annotations": [{"result": [{"type": "relation", "from_id": "a"}]}]},
}


@pytest.mark.parametrize("form", RELATED)
def test_relations_that_are_left_out_are_told_once(tmp_path, form):
    path = tmp_path / "project.json"
    plain = {name: value for name, value in RELATED[form].items() if name not in ("relations", "annotations")}
    path.write_text("".join(json.dumps(v) + "\n" for v in (RELATED[form], plain, RELATED[form])), encoding="utf-8")
    with pytest.warns(LeftOutWarning) as told:
        assert len(read_documents(path, format=form)) == 3
    (warning,) = told
    assert str(warning.message).startswith(f"{path}: the relations between entities in 2 documents are left out")


def test_predictions_are_suggested_until_somebody_submits_them(tmp_path):
    path = tmp_path / "tasks.json"
    predicted = {"data": {"text": TEXT}, "predictions": [{"score": 0.5, "result": LS_UTF_16}]}
    skipped = predicted | {"annotations": [{"was_cancelled": True, "result": LS_UTF_16}]}
    corrected = predicted | {"annotations": [{"result": LS_UTF_16[:1]}]}
    path.write_text(json.dumps([predicted, skipped, corrected]), encoding="utf-8")
    found = read_documents(path)
    assert [(d.spans, d.is_labelled, d.is_suggested) for d in found] == [
        (SPANS, True, True),
        ((), False, False),
        (SPANS[:1], True, False),
    ]
    assert [s.spans for s in read_sentences(path)] == [SPANS[:1]]
    path.write_text(json.dumps([predicted, skipped]), encoding="utf-8")
    with pytest.raises(DataError, match="1 has a model's predictions, which nobody has submitted"):
        read_sentences(path)


def test_suggested_spans_are_written_as_predictions(tmp_path):
    suggested = Document(TEXT, SPANS, {"rank": 1}, is_suggested=True)
    write_documents(tmp_path / "tasks.json", [suggested, Document(TEXT)], format="label-studio")
    tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    assert [sorted(task) for task in tasks] == [["data", "predictions"], ["annotations", "data"]]
    first, second = read_documents(tmp_path / "tasks.json")
    assert (first.spans, first.meta, first.is_suggested) == (SPANS, {"rank": 1}, True) and not second.is_suggested


def spacy_doc() -> Doc:
    nlp = spacy.blank("zh")
    doc = nlp.make_doc(TEXT)
    for k, token in enumerate(doc):
        token.is_sent_start = k == 0
    doc.ents = [doc.char_span(s.start, s.end, label=s.label) for s in SPANS]
    return doc


def test_spacys_own_files(tmp_path):
    doc = spacy_doc()
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    (tmp_path / "doc.json").write_text(json.dumps(doc.to_json()), encoding="utf-8")
    from spacy.training import docs_to_json

    (tmp_path / "v2.json").write_text(json.dumps([docs_to_json([doc])]), encoding="utf-8")
    for name in ("a.spacy", "doc.json", "v2.json"):
        (found,) = read_documents(tmp_path / name)
        assert (found.text, found.spans) == (TEXT, SPANS), name
    bare = DocBin(attrs=["ORTH"], docs=[spacy.blank("zh").make_doc(TEXT)])
    bare.to_disk(tmp_path / "bare.spacy")
    assert not read_documents(tmp_path / "bare.spacy")[0].is_labelled


def test_displacy_draws_what_is_written(tmp_path):
    write_documents(tmp_path / "d.json", [Document(TEXT, SPANS)], format="displacy")
    html = spacy.displacy.render(
        json.loads((tmp_path / "d.json").read_text(encoding="utf-8")), style="ent", manual=True
    )
    assert "张桂梅" in html and "云南" in html and html.count("<mark") == 2


def test_numbers_for_tags(tmp_path):
    numbers = [{"tokens": HF["tokens"], "ner_tags": [TAGS.index(tag) for tag in HF["ner_tags"]], "id": "0"}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(numbers), encoding="utf-8")
    with pytest.raises(DataError, match=r"tags are numbers, and nothing says their names; give them by --tag-names"):
        read_documents(path)
    assert read_documents(path, options=ReadingOptions(tag_names=tuple(TAGS)))[0].spans == SPANS
    features = {"ner_tags": {"feature": {"names": TAGS, "_type": "ClassLabel"}, "_type": "Sequence"}}
    table = pa.Table.from_pylist(numbers)
    pq.write_table(
        table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})}),
        tmp_path / "a.parquet",
    )
    assert find_format(tmp_path / "a.parquet") == "hugging-face"
    assert read_documents(tmp_path / "a.parquet")[0].spans == SPANS
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": features}), encoding="utf-8")
    assert read_documents(path)[0].spans == SPANS and dict(read_documents(path)[0].meta) == {"id": "0"}
    numbers[0]["ner_tags"][0] = 9
    path.write_text(json.dumps(numbers), encoding="utf-8")
    with pytest.raises(DataError, match="row 1: tag 9, expected 0 to 4"):
        read_documents(path)


def test_conll_of_four_columns(tmp_path):
    path = tmp_path / "a.conll"
    lines = [
        "-DOCSTART- -X- O O",
        "",
        "张 NR B-NP B-PER",
        "桂梅 NR I-NP I-PER",
        "在 P B-PP O",
        "",
        "云南 NR B-NP B-LOC",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert [(d.text, d.spans) for d in read_documents(path)] == [
        ("张桂梅在", (Span(0, 3, "PER"),)),
        ("云南", (Span(0, 2, "LOC"),)),
    ]
    plain = path.rename(tmp_path / "train.txt")
    assert [s.text for s in read_sentences(plain)] == ["张桂梅在", "云南"]
    plain.write_text("a b c d O\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1: expected 2 to 4 columns, found 5"):
        read_documents(plain, format="conll")


def test_long_documents_are_cut_outside_their_entities(tmp_path):
    text = "张桂梅在云南。" * 100 + "\n\n" + "长" * 400
    spans = [Span(7 * k, 7 * k + 3, "PER") for k in range(100)] + [Span(702 + 200, 702 + 300, "X")]
    path = tmp_path / "a.csv"
    write_documents(path, [Document(text, tuple(spans))])
    found = read_sentences(path)
    assert sum(len(s.spans) for s in found) == 101 and all(len(s.text) <= 400 for s in found) and len(found) >= 4
    assert all(s.text[x.start : x.end] in ("张桂梅", "长" * 100) for s in found for x in s.spans)


def test_what_cannot_be_read_or_written_is_told(tmp_path):
    def refused(raw: str, form: str) -> str:
        path = tmp_path / "bad"
        path.write_text(raw, encoding="utf-8")
        with pytest.raises(DataError) as error:
            read_documents(path, format=form)
        return str(error.value)

    assert "line 2: LOC at [0, 9) does not fit" in refused(
        '{"text": "a", "label": []}\n{"text": "a", "label": [[0, 9, "LOC"]]}', "doccano"
    )
    assert "is '上海', but" in refused(
        '[{"data": {"text": "北京"}, "annotations": [{"result": [{"type": "labels", "value": '
        '{"start": 0, "end": 2, "text": "上海", "labels": ["LOC"]}}]}]}]',
        "label-studio",
    )
    assert "the text of LOC is '上海', but [2, 4) of the sentence is '京。'" in refused(  # and not offsets of UTF-16
        '[{"data": {"text": "😀北京。"}, "annotations": [{"result": [{"type": "labels", "value": '
        '{"start": 2, "end": 4, "text": "上海", "labels": ["LOC"]}}]}]}]',
        "label-studio",
    )
    assert "not JSON" in refused("[{]", "displacy") and "record 1: 1 fields, expected 2" in refused(
        "text,id\na\n", "csv"
    )
    assert "not a DocBin that spaCy can read" in refused("x", "docbin")
    with pytest.raises(DataError, match="unknown format 'conl'"):
        read_documents(tmp_path / "bad", format="conl")
    with pytest.raises(DataError, match="cannot tell the format of"):
        read_documents(tmp_path / "bad")
    with pytest.raises(DataError, match="format docbin is only read"):
        write_documents(tmp_path / "x", [], format="docbin")
    with pytest.raises(DataError, match="record 2: 3 fields, expected 2"):
        (tmp_path / "bad.tsv").write_text("text\tid\na\t1\n\nb\t2\t3\n", encoding="utf-8")
        read_documents(tmp_path / "bad.tsv")
    with pytest.raises(DataError, match="TSV cannot hold a tab"):
        write_documents(tmp_path / "x.tsv", [Document("a\tb")])
    with pytest.raises(DataError, match="number 1: LOC at"):
        write_documents(tmp_path / "x.jsonl", [Document("a", (Span(0, 2, "LOC"),))])
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    assert read_documents(tmp_path / "empty.txt") == []
    (tmp_path / "t.jsonl").write_text('{"data": {"text": "a"}}', encoding="utf-8")
    with pytest.raises(DataError, match="no labelled text in it, of 1 text;"):
        read_sentences(tmp_path / "t.jsonl")
    assert set(FORMATS) >= {"txt", "conll", "brat"}


@pytest.mark.parametrize(("form", "separator"), [("csv", ","), ("tsv", "\t")])
def test_blank_lines_of_tables_are_no_documents(tmp_path, form, separator):
    rows = (("text", "id"), ("北京", "1"), ("",), ("上海", "2"), ("",))
    (tmp_path / "x").write_text("".join(separator.join(row) + "\r\n" for row in rows), encoding="utf-8")
    documents = read_documents(tmp_path / "x", format=form)
    assert [(x.text, x.meta, x.line) for x in documents] == [("北京", {"id": "1"}, 1), ("上海", {"id": "2"}, 2)]
