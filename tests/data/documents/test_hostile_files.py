"""Files whose values are hostile are refused with one line, and nothing else happens."""

import datetime
import decimal
import json
import zlib

import pytest

from cige.data.documents.document import Document
from cige.data.documents.formats import read_documents, write_documents
from cige.data.sentence import Span
from cige.errors import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def refusal(path, form):
    with pytest.raises(DataError) as told:
        read_documents(path, format=form)
    assert len(str(told.value).splitlines()) == 1 and len(str(told.value)) < 1000
    return str(told.value)


def parquet(tmp_path, columns, names=None):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(list(columns.values()), names=names or list(columns)), path)
    return path


def not_utf8():
    return pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"text": not_utf8()}, "'utf-8' codec"),
        ({"text": pa.array([b"bytes"])}, "the text is bytes"),
        ({"text": pa.array([None], pa.string())}, "row 1: the text is NoneType"),
        ({"text": pa.array(["甲"]), "day": pa.array([2**31 - 1], pa.date32())}, "days=2147483647"),
        ({"text": pa.array(["甲"]), "entities": pa.array([[b"\xff"]])}, "row 1: expected {start, end, label}"),
        ({"text": pa.array(["甲"]), "entities": pa.array([[datetime.datetime(2024, 1, 1)]])}, "row 1: expected {start"),
        ({"text": pa.array(["甲"]), "entities": pa.array(['[[0, 9, "A\\nB"]]'])}, "A↵B at [0, 9) does not fit"),
        ({"text": pa.array(["甲"]), "entities": pa.array([f'[[0, 1{"0" * 4000}, "A"]]'])}, "…"),
    ],
)
def test_parquet(tmp_path, columns, said):
    assert said in refusal(parquet(tmp_path, columns), "parquet")


def test_two_columns_of_one_name(tmp_path):
    path = parquet(tmp_path, {"a": pa.array(["甲"]), "b": pa.array(["乙"])}, ["text", "text"])
    assert "two columns are called 'text'" in refusal(path, "parquet")
    (tmp_path / "x.csv").write_text("text,text\n甲,乙\n", encoding="utf-8")
    assert "two columns are called 'text'" in refusal(tmp_path / "x.csv", "csv")


def test_rows_are_read_as_they_are_needed(tmp_path, monkeypatch):
    rows = pa.table({"text": pa.array([None] * 5000, pa.string())})
    pq.write_table(rows, tmp_path / "many.parquet", row_group_size=1000)
    n_read = []
    iter_batches = pq.ParquetFile.iter_batches

    def noted(self, *args, **options):
        for batch in iter_batches(self, *args, **options):
            n_read.append(len(batch))
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    assert "row 1: the text is NoneType" in refusal(tmp_path / "many.parquet", "parquet")
    assert "row 1: expected lists" in refusal(tmp_path / "many.parquet", "hugging-face")
    assert n_read == [1000, 1000]


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv", "parquet", "doccano", "label-studio", "displacy"])
def test_no_documents_at_all(tmp_path, form):
    write_documents(tmp_path / "none", [], format=form)
    assert read_documents(tmp_path / "none", format=form) == []


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "doccano", "label-studio"])
def test_other_values_replace_neither_text_nor_spans(tmp_path, form):
    """A column "text" beside the tokens of Hugging Face, say, or beside --text-column."""
    document = Document(
        "南京", (Span(0, 2, "LOC"),), {"text": "别的", "entities": [], "label": [], "labels": [], "id": 7}
    )
    unlabelled = Document("南京", (), {"entities": [], "label": [], "id": 8}, is_labelled=False)
    write_documents(tmp_path / "x", [document, unlabelled], format=form)
    again = read_documents(tmp_path / "x", format=form)
    assert [(x.text, x.spans) for x in again] == [("南京", document.spans), ("南京", ())]
    assert [int(x.meta["id"]) for x in again] == [7, 8]


def test_dictionary_encoded_and_view_columns_are_read(tmp_path):
    texts = ["甲乙", "丙"]
    for kind in (pa.dictionary(pa.int8(), pa.string()), pa.string_view(), pa.large_string()):
        path = parquet(tmp_path, {"text": pa.array(texts, pa.string()).cast(kind)})
        assert [x.text for x in read_documents(path)] == texts


def test_times_and_decimals_are_written_as_json_strings(tmp_path):
    when = datetime.datetime(2024, 5, 1, 12)
    meta = {"when": when, "day": when.date(), "cost": decimal.Decimal("1.50"), "took": [datetime.timedelta(hours=1)]}
    write_documents(tmp_path / "x.jsonl", [Document("甲", (), meta)])
    (found,) = read_documents(tmp_path / "x.jsonl")
    assert found.meta == {"when": "2024-05-01T12:00:00", "day": "2024-05-01", "cost": "1.50", "took": ["1:00:00"]}
    with pytest.raises(DataError, match="JSON cannot hold a value of type bytes"):
        write_documents(tmp_path / "y.jsonl", [Document("甲", (), {"image": b"\xff"})])


@pytest.mark.parametrize("meta", [{"id": 10**400}, {"x": {}}, {"x": [1, "a"]}])
def test_what_parquet_cannot_hold(tmp_path, meta):
    with pytest.raises(DataError, match="Parquet cannot hold these documents"):
        write_documents(tmp_path / "x.parquet", [Document("甲", (), meta)])


TASK = {"data": {"text": "南京😀市"}}


@pytest.mark.parametrize(
    ("form", "value", "said"),
    [
        ("label-studio", TASK | {"annotations": True}, "expected a list under 'annotations', found bool"),
        ("label-studio", TASK | {"predictions": 7}, "expected a list under 'predictions', found int"),
        ("label-studio", TASK | {"annotations": [{"result": 0.5}]}, "expected a list under 'result', found float"),
        ("label-studio", {"text": "😀", "label": [{"start": [], "end": {}, "labels": ["X"]}]}, "whole numbers"),
        ("label-studio", {"text": "😀京", "label": [{"start": 0.0, "end": 3.0, "labels": ["X"]}]}, "whole numbers"),
        ("label-studio", {"text": "京", "label": [{"start": 0, "end": 1, "labels": [7]}]}, "expected a name"),
        ("doccano", {"text": "南京", "label": [[1, 0, "LOC"]]}, "LOC at [1, 0) does not fit a text of 2 characters"),
        ("doccano", {"text": "南京", "label": [[0, True, "LOC"]]}, "whole numbers"),
        ("doccano", {"text": "南京", "label": [[0, 3, "L\nC"]]}, "L↵C at [0, 3)"),
        (
            "doccano",
            {"text": "南京", "label": [[0, 9, "L" * 9000]]},
            "…",
        ),
        ("hugging-face", {"tokens": ["南", ""], "ner_tags": ["O", "B-LOC"]}, "an entity LOC of empty tokens only"),
        ("hugging-face", {"tokens": ["南", None], "ner_tags": ["O", "O"]}, "strings under 'tokens', found None"),
        ("hugging-face", {"tokens": ["南"], "ner_tags": ["B" * 9000]}, "…"),
        ("spacy-json", {"paragraphs": 7}, "expected a list under 'paragraphs', found int"),
        ("spacy-json", {"paragraphs": [{"sentences": [{}]}, {"sentences": [{"tokens": 1}]}]}, "under 'tokens'"),
    ],
)
def test_json(tmp_path, form, value, said):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([value]), encoding="utf-8")
    assert said in refusal(path, form)


@pytest.mark.parametrize("places", ["2 1", "0 9", f"0 1{'0' * 400}", f"0 1{'0' * 5000}", "0 2;0 2", "0 0"])
def test_brat(tmp_path, places):
    (tmp_path / "a.txt").write_text("南京市", encoding="utf-8")
    (tmp_path / "a.ann").write_text(f"T1\tLOC {places}\t南京\n", encoding="utf-8")
    if places == "0 2;0 2":  # the same place twice
        assert [(s.start, s.end) for s in read_documents(tmp_path / "a.ann")[0].spans] == [(0, 2)]
    else:
        assert "a.ann, line 1" in refusal(tmp_path / "a.ann", "brat")


def packed(tmp_path, **changed):
    """A DocBin with other values under some keys."""
    spacy = pytest.importorskip("spacy")
    import srsly
    from spacy.tokens import Doc, DocBin, Span

    doc = Doc(spacy.blank("xx").vocab, words=["南京", "市", "好"], spaces=[False] * 3)
    doc.ents = [Span(doc, 0, 2, "LOC")]
    found = srsly.msgpack_loads(zlib.decompress(DocBin(docs=[doc]).to_bytes()))
    path = tmp_path / "x.spacy"
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(found | changed)))
    return path


def test_docbin(tmp_path):
    assert [(s.start, s.end, s.label) for s in read_documents(packed(tmp_path))[0].spans] == [(0, 3, "LOC")]
    for changed in ({"strings": []}, {"tokens": b""}, {"lengths": b"\xff" * 8}, {"flags": []}, {"attrs": [1, 2]}):
        assert "not a DocBin that spaCy can read" in refusal(packed(tmp_path, **changed), "docbin")
    assert read_documents(packed(tmp_path, cats=[], user_data=[b"\xc1"], span_groups=[b"x"])), "none of these is read"


def test_a_docbin_that_unpacks_to_far_more_than_documents_do(tmp_path):
    pytest.importorskip("spacy")
    packer = zlib.compressobj()
    zeros = b"".join(packer.compress(bytes(1 << 20)) for _ in range(80)) + packer.flush()
    (tmp_path / "bomb.spacy").write_bytes(zeros)
    assert "unpacks to more than 64 MB" in refusal(tmp_path / "bomb.spacy", "docbin")
