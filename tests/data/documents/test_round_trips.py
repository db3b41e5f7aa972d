"""No offset is lost on the way through any format, whatever characters a text has."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cige.bulk.rows import reason_not_to_write
from cige.data.documents import Document, read_documents, write_documents
from cige.data.sentence import Span
from cige.errors import DataError

PIECES = [
    "北京",
    "羅氏公司",
    "張桂梅",
    "😀",
    "👨\u200d👩\u200d👧",
    "𠮷",
    "e\u0301",
    "A",
    "\u3000",
    "\u2028",
    "\x85",
    '"',
    "\\",
    "<b>",
]
WHOLE_FILES = ["jsonl", "csv", "parquet", "doccano", "label-studio", "displacy", "brat"]
LINES = ["bmes", "bioes", "bio", "conll", "cluener", "tsv"]
LABELS = st.sampled_from(["PER", "LOC", "人名", "A-B.c"])


@st.composite
def documents(draw, *, with_breaks: bool, overlapping: bool) -> Document:
    """A text of odd pieces with spans at whole code points, none of which begins or ends at a line break."""
    pieces = draw(
        st.lists(st.sampled_from([*PIECES, " ", *("\n\r\t" if with_breaks else "")]), min_size=1, max_size=12)
    )
    text = "".join(pieces)
    spans: list[Span] = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text) - 1))
        end = draw(st.integers(start + 1, len(text)))
        span = Span(start, end, draw(LABELS))
        is_free = all(span.end <= other.start or other.end <= span.start for other in spans)
        if (overlapping or is_free) and text[start] not in "\r\n" and text[end - 1] not in "\r\n":
            spans.append(span)
    return Document(text, tuple(sorted(spans)))


def through(document_list: list[Document], form: str, folder: Path) -> list[Document]:
    path = folder / f"it-{form}"
    if form == "brat" and path.exists():
        for file in path.iterdir():
            file.unlink()
    write_documents(path, document_list, format=form)
    return read_documents(path, format=form)


def same(found: list[Document], expected: list[Document]) -> bool:
    return [(d.text, d.spans, d.is_labelled) for d in found] == [(d.text, d.spans, d.is_labelled) for d in expected]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(documents(with_breaks=True, overlapping=True), min_size=1, max_size=3))
def test_documents_with_line_breaks_and_overlaps(tmp_path, made):
    for form in WHOLE_FILES:
        assert same(through(made, form, tmp_path), made), form


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(documents(with_breaks=False, overlapping=False), min_size=1, max_size=3))
def test_flat_documents_of_one_line(tmp_path, made):
    for form in LINES:
        assert same(through(made, form, tmp_path), made), form


def test_a_thousand_documents_through_every_format_in_turn(tmp_path):
    """From each format to the next; the texts and offsets at the end are those of the beginning."""
    rows = random_documents(1000)
    found = rows
    for form in [*LINES, *WHOLE_FILES[:-1]]:
        found = through(found, form, tmp_path)
        assert same(found, rows), form
    assert same(through(rows[:100], "brat", tmp_path), rows[:100])  # each of its files is synchronised with the disk
    assert sum(len(d.spans) for d in rows) > 1000 and any(ord(c) > 0xFFFF for d in rows for c in d.text)


def random_documents(n: int) -> list[Document]:
    import random

    rng = random.Random(0)
    made = []
    for _ in range(n):
        text, spans = "", []
        for piece in rng.choices([*PIECES, " "], k=rng.randint(1, 30)):
            if rng.random() < 0.3:
                spans.append(Span(len(text), len(text) + len(piece), rng.choice(["PER", "LOC", "人名"])))
            text += piece
        made.append(Document(text, tuple(spans)))
    return made


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "doccano", "label-studio"])
def test_other_columns_are_kept(tmp_path, form):
    made = [Document("北京", (Span(0, 2, "LOC"),), {"id": "7", "source": "a"})]
    (found,) = through(made, form, tmp_path)
    assert dict(found.meta) == {"id": "7", "source": "a"} and found.spans == made[0].spans


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "label-studio", "brat"])
def test_unlabelled_documents_stay_unlabelled(tmp_path, form):
    made = [Document("北京", is_labelled=False), Document("上海", (Span(0, 2, "LOC"),))]
    assert same(through(made, form, tmp_path), made)


def test_lone_surrogates_pass_through_json(tmp_path):
    made = [Document("\ud800北京😀", (Span(1, 3, "LOC"),))]
    for form in ("jsonl", "doccano", "label-studio", "displacy"):
        assert same(through(made, form, tmp_path), made)
    assert json.loads((tmp_path / "it-jsonl").read_text(encoding="utf-8"))["text"] == "\ud800北京😀"


def test_a_nul_character_is_written_as_csv_or_refused(tmp_path, monkeypatch):
    documents = [Document("北\0京", (Span(0, 3, "LOC"),))]
    if sys.version_info >= (3, 11):
        write_documents(tmp_path / "a.csv", documents)
        assert [d.text for d in read_documents(tmp_path / "a.csv")] == ["北\0京"]
        monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(DataError, match=r"Python before 3\.11 cannot write a NUL character as CSV; write jsonl"):
        write_documents(tmp_path / "b.csv", documents)
    assert not (tmp_path / "b.csv").exists()
    assert reason_not_to_write({"text": "北\0京"}, "csv", "entities") and not reason_not_to_write(
        {"text": "北京"}, "csv", "entities"
    )
