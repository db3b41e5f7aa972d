"""The Arrow core: rows in their order, errors of their own, offsets in both units, whatever the batch."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.bulk import Annotator, AnnotatorSettings, annotate_batch, output_schema
from cige.bulk.annotator import Annotation
from cige.bulk.arrow import entities_array
from cige.data.documents import read_documents
from cige.data.sentence import Span
from cige.entities.entity import Entity
from cige.errors import DataError, ModelError
from cige.runtime import native

TEXTS = [
    "罗氏公司总裁林晓岚从巴塞尔飞抵南京市长江大桥。",
    "",
    "😀😀张桂梅在云南𠮷林创办女子高中",
    "Hello",
    "羅氏公司在上海",
]


@pytest.fixture(scope="module")
def annotator() -> Annotator:
    return Annotator.open(AnnotatorSettings())


def batch_of(texts, **columns) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.string()), **columns})


def test_entities_are_those_of_a_call(annotator):
    batch = batch_of(TEXTS, id=[1, 2, 3, 4, 5])
    found = annotate_batch(annotator, batch)
    assert found.schema == output_schema(batch.schema) and found.column("id").to_pylist() == [1, 2, 3, 4, 5]
    for text, entities in zip(TEXTS, found.column("entities").to_pylist(), strict=True):
        own = [asdict(e) | {"score": pytest.approx(e.score, abs=1e-6), "parts": []} for e in annotator.finder(text)]
        assert entities == own and all(text[e["start"] : e["end"]] == e["text"] for e in entities)
    assert found.column("error").null_count == len(TEXTS)
    assert sum(map(len, found.column("entities").to_pylist())) >= 6


def test_forced_entities_and_parts_are_in_the_column_and_can_be_read_again(tmp_path):
    text = "第一和口腔医院"
    entities = [
        Entity(0, 7, "ORG", "第一医院", 0.5, parts=((0, 2), (5, 7))),
        Entity(3, 5, "ORG", "口腔", 1.0, forced=True),
    ]
    column = entities_array([Annotation(entities), Annotation(None, "no text"), Annotation([])])
    assert column.type == output_schema(batch_of([]).schema).field("entities").type
    assert column.to_pylist() == [
        [
            {**entities[0].to_dict(), "forced": False},
            {**entities[1].to_dict(), "parts": []},
        ],
        None,
        [],
    ]
    pq.write_table(pa.table({"text": [text], "entities": column[:1]}), tmp_path / "a.parquet")
    assert read_documents(tmp_path / "a.parquet")[0].spans == (
        Span(0, 7, "ORG", ((0, 2), (5, 7))),
        Span(3, 5, "ORG"),
    )


def test_a_row_that_cannot_be_read_has_an_error_and_costs_the_others_nothing(annotator, monkeypatch):
    ordinary = annotator.finder.stream

    def stream(texts, *options, **more):
        if any("失败" in text for text in texts):
            raise MemoryError("a sentence too long")
        return ordinary(texts, *options, **more)

    monkeypatch.setattr(annotator.finder, "stream", stream)
    texts = [TEXTS[0], None, "失败", TEXTS[2]]
    raw = pa.array([b"\xff\xfe", b"ok", b"ok", b"ok"]).cast(pa.binary()).view(pa.string())
    found = annotate_batch(annotator, batch_of(texts))
    assert [error and error.partition(":")[0] for error in found.column("error").to_pylist()] == [
        None,
        "no text",
        "MemoryError",
        None,
    ]
    assert [e is None for e in found.column("entities").to_pylist()] == [False, True, True, False]
    broken = annotate_batch(annotator, pa.RecordBatch.from_arrays([raw], names=["text"]))
    assert broken.column("error").to_pylist()[0] == "the text is bytes, expected a string"
    assert broken.column("error").null_count == 3


def test_long_texts_can_be_left_out():
    found = Annotator.open(AnnotatorSettings(max_chars=3)).annotate(["北京", "北京大学"])
    assert found[0].error is None and found[1].error == "4 characters, more than the 3 allowed"


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["😀", "张桂梅在云南", "𠮷", "A", "罗氏公司", " "]), max_size=12).map("".join))
def test_utf_16_offsets_cut_the_same_surface(text):
    wide = Annotator.open(AnnotatorSettings(offsets="utf-16")) if not CACHE else CACHE[0]
    CACHE[:] = [wide]
    units = text.encode("utf-16-le")
    for e in wide.annotate([text])[0].entities:
        assert units[2 * e.start : 2 * e.end].decode("utf-16-le") == e.text


CACHE: list[Annotator] = []


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_size_of_a_batch_changes_nothing(annotator, size):
    whole = annotate_batch(annotator, pa.Table.from_batches([batch_of(TEXTS * 2)]))
    parts = [annotate_batch(annotator, batch) for batch in whole.select(["text"]).to_batches(max_chunksize=size)]
    together = pa.Table.from_batches(parts)
    if native.load() is None:  # NumPy's sums depend on the number of rows
        assert together.schema == whole.schema and rounded(together) == rounded(whole)
    else:
        assert together == whole
    none = annotate_batch(annotator, batch_of([]))
    assert none.num_rows == 0 and none.schema == whole.schema


def rounded(table: pa.Table) -> list[dict]:
    """The rows, with scores of four digits."""
    rows = table.to_pylist()
    for entity in (entity for row in rows for entity in row["entities"] or ()):
        entity["score"] = round(entity["score"], 4)
    return rows


def test_what_cannot_be_is_refused(annotator):
    with pytest.raises(DataError, match="no column 'body'; the columns are text"):
        annotate_batch(annotator, batch_of(["a"]), text_column="body")
    with pytest.raises(DataError, match="holds int64, expected strings"):
        annotate_batch(annotator, pa.RecordBatch.from_pydict({"text": [1]}))
    twice = pa.RecordBatch.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    with pytest.raises(DataError, match="two columns have the name 'text'"):
        annotate_batch(annotator, twice)
    with pytest.raises(DataError, match="'error' is there already"):
        annotate_batch(annotator, batch_of(["a"], error=["b"]))
    with pytest.raises(ModelError, match="utf-8"):
        AnnotatorSettings(offsets="utf-8")


def test_versions_follow_model_and_words(tmp_path, annotator):
    words = tmp_path / "words.txt"
    words.write_text("阿拉善贺兰草\tCOMPANY\n", encoding="utf-8")
    own = Annotator.open(AnnotatorSettings(lexicon_add=(str(words),)))
    assert own.versions.model == annotator.versions.model and own.versions.lexicon != annotator.versions.lexicon
    assert Annotator.open(AnnotatorSettings()).versions == annotator.versions
