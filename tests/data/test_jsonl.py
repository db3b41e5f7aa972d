"""JSON lines and CLUENER: what is read, what is refused and where, and that writing loses nothing."""

import json
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.data import RepairWarning, Sentence, Span, read_labelled, read_sentences, write_sentences
from cige.data.documents import read_documents
from cige.data.jsonl import format_json_lines, parse_json_lines
from cige.errors import DataError

SENTENCES = [
    Sentence("小明在北京👍", (Span(0, 2, "PER"), Span(3, 5, "LOC")), 1),
    Sentence("", (), 2),
]
JSONL = (
    '{"text": "小明在北京👍", "entities": [{"start": 3, "end": 5, "label": "LOC", "text": "北京", "score": 0.5},'
    ' {"start": 0, "end": 2, "label": "PER"}], "id": 7}\n'
    '{"text": "", "entities": []}\n'
)
CLUENER = (
    '{"text": "小明在北京👍", "label": {"LOC": {"北京": [[3, 4]]}, "PER": {"小明": [[0, 1]]}}}\n'
    '{"text": "", "label": {}}\n'
)


def put(folder, text, name="data.jsonl"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_entities_may_be_lists_as_well_as_objects(tmp_path):
    path = put(
        tmp_path, '{"text": "小明在北京", "entities": [[3, 5, "LOC", 0.9], {"start": 0, "end": 2, "label": "PER"}]}\n'
    )
    assert read_sentences(path)[0].spans == (Span(0, 2, "PER"), Span(3, 5, "LOC"))


@pytest.mark.parametrize(("text", "format"), [(JSONL, "jsonl"), (CLUENER, "cluener")])
@pytest.mark.parametrize("name", ["data.jsonl", "data.json", "data.txt"])
def test_both_forms_are_told_apart_by_their_contents(tmp_path, text, format, name):
    path = put(tmp_path, text, name)
    assert read_sentences(path) == SENTENCES
    assert read_sentences(path, format=format) == SENTENCES
    assert read_labelled(path).format == format


def test_blank_lines_crlf_and_bom_are_tolerated(tmp_path):
    path = put(tmp_path, "\ufeff\r\n" + JSONL.replace("\n", "\r\n\r\n"))
    assert [s.spans for s in read_sentences(path)] == [s.spans for s in SENTENCES]
    assert [s.line for s in read_sentences(path)] == [2, 4]


def test_a_column_file_of_braces_is_no_json(tmp_path):
    (sentence,) = read_sentences(put(tmp_path, "{ O\n} O\n", "data.txt"))
    assert sentence.text == "{}"


def entity(**changes):
    fields = {"start": 0, "end": 2, "label": "PER"} | changes
    return json.dumps({"text": "小明在北京", "entities": [fields]})


def cluener(label):
    return json.dumps({"text": "小明在北京", "label": label})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "小明"', "not JSON"),
        ("[1, 2]", "expected an object"),
        ("[" * 100_000, "not JSON"),
        ('{"entities": []}', 'a string under "text"'),
        ('{"text": 3, "entities": []}', 'a string under "text"'),
        ('{"text": "小明"}', 'a list under "entities"'),
        ('{"text": "小明", "entities": [[0, 2]]}', "label\\] for an entity, found \\[0, 2\\]"),
        ('{"text": "小明", "entities": ["小明"]}', "found '小明'"),
        ('{"text": "小明", "entities": [[0, 3, "PER"]]}', r"PER at \[0, 3\) does not fit a text of 2 characters"),
        (entity(start=-1), r"PER at \[-1, 2\) does not fit a text of 5 characters"),
        (entity(end=6), r"\[0, 6\) does not fit"),
        (entity(end=0), r"\[0, 0\) does not fit"),
        (entity(start="0"), "whole numbers"),
        (entity(start=True), "whole numbers"),
        (entity(end=1.0), "whole numbers"),
        (entity(label=""), "a name as the label"),
        (entity(label=None), "a name as the label"),
        (entity(text="明在"), r"is '明在', but \[0, 2\) of the sentence is '小明'"),
        (entity(text=None), "the text of .* is None"),
    ],
)
def test_bad_records_are_refused_by_line(tmp_path, line, message):
    path = put(tmp_path, JSONL + line + "\n")
    with pytest.raises(DataError, match=f"line 3: .*{message}") as caught:
        read_sentences(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("start", "end", "surface", "is_told"),
    [(3, 5, "北京", True), (8, 10, "上海", True), (3, 5, "上海", False), (7, 12, None, False)],
)
def test_offsets_in_utf_16_units_are_told(tmp_path, start, end, surface, is_told):
    """`cige annotate --offsets utf-16` writes them."""
    entity = {"start": start, "end": end, "label": "LOC"} | ({"text": surface} if surface else {})
    path = put(tmp_path, json.dumps({"text": "👍在北京和👍上海", "entities": [entity]}) + "\n")
    with pytest.raises(DataError) as caught:
        read_sentences(path)
    assert ("UTF-16 code units" in str(caught.value)) == is_told


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (cluener([]), 'under "label"'),
        (cluener({"PER": [[0, 1]]}), "for type 'PER'"),
        (cluener({"PER": {"小明": [0, 1]}}), "for PER '小明'"),
        (cluener({"PER": {"小明": [["0", "1"]]}}), "whole numbers"),
        (cluener({"PER": {"小明": [[0, 2]]}}), "is '小明'"),
        (cluener({"PER": {"小明": [[4, 5]]}}), "does not fit"),
        ('{"id": 0, "text": "无标注"}', 'under "label"'),
    ],
)
def test_bad_cluener_records_are_refused_by_line(tmp_path, line, message):
    with pytest.raises(DataError, match=f"line 3: .*{message}"):
        read_sentences(put(tmp_path, CLUENER + line + "\n"))


def test_overlaps_are_refused_or_lose_the_inner_spans_on_request(tmp_path):
    line = {
        "text": "北京大学生",
        "entities": [
            {"start": 0, "end": 2, "label": "LOC"},
            {"start": 0, "end": 4, "label": "ORG"},
            {"start": 3, "end": 5, "label": "PER"},
        ],
    }
    path = put(tmp_path, JSONL + json.dumps(line) + "\n")
    with pytest.raises(DataError, match=r"line 3: LOC '北京' at \[0, 2\) overlaps another entity.*repair=True"):
        read_sentences(path)
    with pytest.warns(RepairWarning, match=r"2 place\(s\) repaired, the first on line 3"):
        sentences = read_sentences(path, repair=True)
    assert sentences[2].spans == (Span(0, 4, "ORG"),)
    assert [r.line for r in read_labelled(path, repair=True).repairs] == [3, 3]


@pytest.mark.parametrize("format", ["jsonl", "cluener"])
def test_files_come_back_as_written(tmp_path, format):
    path = tmp_path / "data.jsonl"
    write_sentences(path, SENTENCES, format=format)
    assert read_sentences(path) == SENTENCES
    assert read_labelled(path).format == format


def test_written_entities_carry_their_surface():
    record = json.loads(format_json_lines(SENTENCES[:1]))
    assert record["entities"][1] == {"start": 3, "end": 5, "label": "LOC", "text": "北京"}
    record = json.loads(format_json_lines(SENTENCES[:1], "cluener"))
    assert record["label"]["LOC"] == {"北京": [[3, 4]]}


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (Sentence("ab", (Span(0, 3, "A"),)), "does not fit"),
        (Sentence("\ud83d\ude00"), "two consecutive surrogates"),
    ],
)
def test_what_would_not_read_back_is_refused(tmp_path, sentence, message):
    with pytest.raises(DataError, match=f"sentence 1.*{message}"):
        write_sentences(tmp_path / "x.jsonl", [sentence])
    assert list(tmp_path.iterdir()) == []


lone = st.sampled_from(["\ud800", "\n", "\u2028", "\x00", "\ufeff"])


@st.composite
def sentences(draw):
    parts = draw(st.lists(st.characters(exclude_categories=["Cs"]) | lone, max_size=10))
    text = "".join(parts)
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    return Sentence(text, tuple(Span(a, b, draw(st.text(min_size=1, max_size=3))) for a, b in pairs))


@given(st.lists(sentences(), min_size=1, max_size=4), st.sampled_from(["jsonl", "cluener"]))
def test_writing_and_reading_give_the_same_sentences(cases, form):
    written = format_json_lines(cases, form).encode("utf-8").decode("utf-8-sig")
    found = parse_json_lines(written, name="x", form=form)
    assert [(s.text, s.spans) for s in found.sentences] == [(s.text, s.spans) for s in cases]


@pytest.mark.parametrize("form", ["jsonl", "cluener"])
def test_nested_entities_are_written_and_read_on_request(tmp_path, form):
    sentence = Sentence("北京大学", (Span(0, 2, "LOC"), Span(0, 4, "ORG"), Span(1, 3, "PER")))
    write_sentences(tmp_path / "x.jsonl", [sentence], format=form)
    assert read_sentences(tmp_path / "x.jsonl", nested=True) == [replace(sentence, line=1)]
    with pytest.raises(DataError, match=r"overlaps another entity; .*head: pair_grid"):
        read_sentences(tmp_path / "x.jsonl")
    with pytest.raises(DataError, match=r"overlap.*JSON lines.*nested=False"):
        write_sentences(tmp_path / "x.bmes", [sentence])


def test_nested_entities_of_documents_stay_in_one_piece(tmp_path):
    text = "甲" * 119 + "。北京大学" + "乙" * 119 + "。" + "丙" * 119 + "。"
    spans = (
        Span(5, 7, "PER"),
        Span(120, 122, "LOC"),
        Span(120, 124, "ORG"),
        Span(130, 131, "PER"),
        Span(300, 301, "PER"),
    )
    write_sentences(tmp_path / "x.jsonl", [Sentence(text, spans)], format="doccano")
    found = read_sentences(tmp_path / "x.jsonl", format="doccano", nested=True)
    shown = [(s.text[span.start : span.end], span.label) for s in found for span in s.spans]
    assert len(found) > 1 and shown == [(text[s.start : s.end], s.label) for s in spans]


BROKEN = Sentence("第一和口腔医院", (Span(0, 7, "ORG", ((0, 2), (5, 7))), Span(3, 7, "ORG")))


def test_discontinuous_entities_are_written_and_read_on_request(tmp_path):
    write_sentences(tmp_path / "x.jsonl", [BROKEN])
    record = json.loads((tmp_path / "x.jsonl").read_text(encoding="utf-8"))
    assert record["entities"][0] == {
        "start": 0,
        "end": 7,
        "label": "ORG",
        "text": "第一医院",
        "parts": [[0, 2], [5, 7]],
    }
    assert read_sentences(tmp_path / "x.jsonl", nested=True) == [replace(BROKEN, line=1)]
    with pytest.raises(
        DataError, match=r"line 1: ORG '第一医院' at \[0, 2\), \[5, 7\) is discontinuous; only `head: pair_grid`"
    ):
        read_sentences(tmp_path / "x.jsonl", repair=True)


@pytest.mark.parametrize("format", ["bmes", "cluener", "doccano"])
def test_other_formats_cannot_hold_discontinuous_entities(tmp_path, format):
    with pytest.raises(DataError, match=r"discontinuous.*jsonl"):
        write_sentences(tmp_path / "x", [replace(BROKEN, spans=BROKEN.spans[:1])], format=format)


@pytest.mark.parametrize("parts", [[[0, 2]], [[0, 2], [2, 7]], [[0, 2], [5, 6]], [[1, 2], [5, 7]], [0, 7], "x"])
def test_parts_that_are_refused(tmp_path, parts):
    entity = {"start": 0, "end": 7, "label": "ORG", "parts": parts}
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": BROKEN.text, "entities": [entity]}), encoding="utf-8")
    with pytest.raises(DataError, match=r"line 1: expected as the parts of \[0, 7\)"):
        read_sentences(tmp_path / "x.jsonl", nested=True)


def test_the_text_of_a_discontinuous_entity_is_that_of_its_parts(tmp_path):
    entity = {"start": 0, "end": 7, "label": "ORG", "text": BROKEN.text, "parts": [[0, 2], [5, 7]]}
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": BROKEN.text, "entities": [entity]}), encoding="utf-8")
    message = (
        r"is '第一和口腔医院', but \[0, 2\), \[5, 7\) of the sentence is '第一医院'; the text of .* its parts alone$"
    )
    with pytest.raises(DataError, match=message):
        read_sentences(tmp_path / "x.jsonl", nested=True)


@pytest.mark.parametrize(("text", "format"), [(JSONL, "jsonl"), (CLUENER, "cluener")])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["data.json", "data.jsonl", "data.txt"])
def test_an_array_of_objects_is_read_like_its_lines(tmp_path, text, format, indent, name):
    """As `json.dump` writes a list; `cige convert` reads it too."""
    objects = [json.loads(line) for line in text.splitlines()]
    path = put(tmp_path, json.dumps(objects, ensure_ascii=False, indent=indent), name)
    assert read_sentences(path) == SENTENCES
    assert read_labelled(path).format == format
    assert [(d.text, d.spans) for d in read_documents(path)] == [(s.text, s.spans) for s in SENTENCES]
    path = put(tmp_path, json.dumps([*objects, {"text": "小明"}]), name)
    with pytest.raises(DataError, match=f"{name}, item 3: expected"):
        read_sentences(path)


def test_a_damaged_array_is_no_file_of_columns(tmp_path):
    """Its first line has as many fields as a line of CoNLL."""
    path = put(tmp_path, '[{"text": "李明", "entities": []},]', "a.json")
    with pytest.raises(
        DataError, match=r"a\.json: not JSON \(.*\); expected one array of objects, or one object per line"
    ):
        read_sentences(path)


def test_where_an_array_of_several_lines_is_damaged_is_told(tmp_path):
    """Until now, documents named the first line, which is only a bracket."""
    path = put(tmp_path, '[\n {"text": "李明", "entities": []},\n {]', "a.json")
    for read in (read_sentences, partial(read_documents, format="jsonl")):
        with pytest.raises(DataError, match=r"a\.json: not JSON \(.*line 3 column 3.*\); expected one array"):
            read(path)
    path = put(tmp_path, '\n{"text": "李明", "entities": []}\n', "b.json")
    assert read_sentences(path)[0].line == read_documents(path)[0].line == 2


def test_one_object_may_have_several_lines(tmp_path):
    value = {"text": "李明在", "entities": [{"start": 0, "end": 2, "label": "PER"}]}
    path = put(tmp_path, json.dumps(value, indent=1) + "\n", "a.json")
    assert [(s.text, s.spans) for s in read_sentences(path)] == [("李明在", (Span(0, 2, "PER"),))]
    assert [d.spans for d in read_documents(path)] == [(Span(0, 2, "PER"),)]
    path = put(tmp_path, json.dumps({"text": "李明在", "entities": 1}, indent=1), "a.json")
    with pytest.raises(DataError, match=r"a\.json, item 1: expected a list"):
        read_sentences(path)


def test_an_entity_that_is_listed_twice_is_one(tmp_path):
    entity = {"start": 0, "end": 2, "label": "PER"}
    path = put(tmp_path, json.dumps({"text": "李明在", "entities": [entity, entity]}), "a.jsonl")
    assert read_sentences(path)[0].spans == (Span(0, 2, "PER"),)
    assert not read_labelled(path, repair=True).repairs
    path = put(tmp_path, json.dumps({"text": "李明在", "entities": [entity, entity | {"label": "ORG"}]}), "a.jsonl")
    with pytest.raises(DataError, match="overlaps another entity"):
        read_sentences(path)


def test_columns_may_begin_with_brackets(tmp_path):
    path = put(tmp_path, "[ O\n{ O\n李 B-PER\n明 E-PER\n", "a.txt")
    assert [(s.text, s.spans) for s in read_sentences(path)] == [("[{李明", (Span(2, 4, "PER"),))]
