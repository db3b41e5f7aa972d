"""Files as other tools write them, told apart by their contents, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from cige.cli import main
from cige.data import read_sentences, write_sentences
from cige.data.documents import FORMATS, Document, ReadingOptions, read_documents, write_documents
from cige.data.documents.formats import find_format
from cige.data.sentence import Sentence, Span
from cige.errors import DataError

TEXT = "😀张桂梅在云南"
SPANS = (Span(1, 4, "PER"), Span(5, 7, "LOC"))
HF = {"tokens": list(TEXT), "ner_tags": ["O", "B-PER", "I-PER", "I-PER", "O", "B-LOC", "I-LOC"]}
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


def test_brat_joins_fragments_at_line_breaks_alone(tmp_path):
    write_documents(tmp_path / "b", [Document("北京\n大学在", (Span(0, 5, "ORG"),))], format="brat")
    assert (tmp_path / "b" / "000001.ann").read_text(encoding="utf-8") == "T1\tORG 0 2;3 5\t北京 大学\n"
    (tmp_path / "b" / "000001.ann").write_text("T1\tORG 0 1;3 5\tx\n#1\tnote\nR1\tr A:T1\n", encoding="utf-8")
    assert read_documents(tmp_path / "b")[0].spans == (Span(0, 5, "ORG", ((0, 1), (3, 5))),)
    with pytest.raises(DataError, match="there already"):
        write_documents(tmp_path / "b", [], format="brat")


def test_brat_holds_the_parts_of_an_entity_as_fragments(tmp_path):
    text, span = "肝\n癌和 肺癌切除", Span(0, 9, "OPERATION", ((0, 3), (5, 6), (7, 9)))
    write_documents(tmp_path / "b", [Document(text, (span,))], format="brat")
    ann = tmp_path / "b" / "000001.ann"
    assert ann.read_text(encoding="utf-8") == "T1\tOPERATION 0 1;2 3;5 6;7 9\t肝 癌 肺 切除\n"
    assert read_documents(tmp_path / "b")[0].spans == (span,)
    for places in ("5 6;0 1", "0 3;2 6", "0 3;3 1", "0 1;5 50"):
        ann.write_text(f"T1\tOPERATION {places}\tx\n", encoding="utf-8")
        with pytest.raises(DataError, match="ann, line 1: "):
            read_documents(tmp_path / "b")
    ann.write_text("T1\tOPERATION 5 6;0 1\tx\n", encoding="utf-8")
    with pytest.raises(DataError, match="'5 6;0 1' overlap or are out of order"):
        read_documents(tmp_path / "b")
    for parts in (((0, 1), (2, 3)), ((3, 4), (5, 6))):  # a line break, and a space
        gapped = Span(parts[0][0], parts[1][1], "OPERATION", parts)
        with pytest.raises(DataError, match="a gap of nothing but whitespace, which is no gap in brat"):
            write_documents(tmp_path / "c", [Document(text, (gapped,))], format="brat")


def test_brat_refuses_a_text_that_would_be_read_without_its_first_character(tmp_path):
    with pytest.raises(DataError, match=r"document 1: begins with U\+FEFF"):
        write_documents(tmp_path / "b", [Document("\ufeff北京", (Span(1, 3, "LOC"),))], format="brat")
    assert not (tmp_path / "b").exists()


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
    with pytest.raises(DataError, match="TSV cannot hold a tab"):
        write_documents(tmp_path / "x.tsv", [Document("a\tb")])
    with pytest.raises(DataError, match="number 1: LOC at"):
        write_documents(tmp_path / "x.jsonl", [Document("a", (Span(0, 2, "LOC"),))])
    (tmp_path / "t.jsonl").write_text('{"data": {"text": "a"}}', encoding="utf-8")
    with pytest.raises(DataError, match="no labelled text in it, of 1 text;"):
        read_sentences(tmp_path / "t.jsonl")
    assert set(FORMATS) >= {"txt", "conll", "brat"}


def test_the_command(tmp_path, capsys):
    source = tmp_path / "a.jsonl"
    write_sentences(source, [Sentence(TEXT, SPANS)])
    assert main(["convert", str(source), str(tmp_path / "t.json"), "--to", "label-studio"]) == 0
    assert "1 document with 2 entities" in capsys.readouterr().out
    assert main(["convert", str(tmp_path / "t.json"), str(tmp_path / "b.bmes")]) == 0
    assert read_sentences(tmp_path / "b.bmes") == [Sentence(TEXT, SPANS, 1)]
    write_sentences(tmp_path / "c.csv", [Sentence(TEXT, SPANS)])
    assert read_sentences(tmp_path / "c.csv")[0].spans == SPANS
    assert main(["convert", str(source), str(tmp_path / "x.unknown")]) == 2
    assert "cannot tell the format from the name" in capsys.readouterr().err


def test_repairs_of_the_command_are_told(tmp_path, capsys):
    source, tags = tmp_path / "a.jsonl", tmp_path / "a.bio"
    write_documents(source, [Document("北京大学在哪", (Span(0, 2, "LOC"), Span(0, 4, "ORG")))])
    assert main(["convert", str(source), str(tags)]) == 2
    assert main(["convert", str(source), str(tags), "--repair"]) == 0
    assert "a.jsonl, line 1: repaired: LOC '北京' at [0, 2) overlapped a longer entity" in capsys.readouterr().err
    assert read_sentences(tags)[0].spans == (Span(0, 4, "ORG"),)
    write_sentences(source, [Sentence("在", ()), Sentence("北京大学", (Span(0, 2, "LOC"), Span(0, 4, "ORG")))])
    for form in ("cluener", "brat"):  # where a line has a number, and where a document has one
        assert main(["convert", str(source), str(tmp_path / form), "--to", form]) == 0
        capsys.readouterr()
        assert main(["convert", str(tmp_path / form), str(tags), "--repair", "--from", form, "--to", "bio"]) == 0
        assert f"{form}, line 2: repaired: LOC '北京' at [0, 2) overlapped" in capsys.readouterr().err
    tags.write_text("北 I-LOC\n京 I-LOC\n", encoding="utf-8")
    assert main(["convert", str(tags), str(source), "--repair"]) == 0
    assert "a.bio: 1 place(s) repaired, the first on line 1: I-LOC must follow" in capsys.readouterr().err
    assert read_sentences(source)[0].spans == (Span(0, 2, "LOC"),)


def test_an_entity_with_a_gap_keeps_its_parts(tmp_path, capsys):
    text, spans = "第一和口腔医院", (Span(0, 7, "ORG", ((0, 2), (5, 7))), Span(3, 7, "ORG"))
    source, same, table = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "c.csv"
    write_sentences(source, [Sentence(text, spans)])
    assert main(["convert", str(source), str(same)]) == 0
    assert same.read_bytes() == source.read_bytes()
    for output, format in (("d", "doccano"), ("e", "label-studio"), ("f", "displacy"), ("g", "cluener")):
        assert main(["convert", str(source), str(tmp_path / output), "--to", format]) == 2
        assert not (tmp_path / output).exists()
        said = capsys.readouterr().err
        assert "number 1: ORG '第一和口腔医院' at [0, 7) is discontinuous, which only" in said
    for output in (table, tmp_path / "c.tsv", tmp_path / "c.parquet", tmp_path / "brat"):
        assert main(["convert", str(source), str(output), *(["--to", "brat"] if output.name == "brat" else [])]) == 0
        assert read_documents(output)[0].spans == spans == read_sentences(output, nested=True)[0].spans
    with pytest.raises(DataError, match=r"line 1: .*discontinuous; only `head: pair_grid`"):
        read_sentences(table, repair=True)


def test_repairs_keep_an_entity_in_the_gap_of_another(tmp_path, capsys):
    text = "第一和口腔医院"
    gapped, within = Span(0, 7, "ORG", ((0, 2), (5, 7))), Span(3, 5, "SITE")
    source, repaired = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_sentences(source, [Sentence(text, (gapped, within, Span(3, 7, "ORG")))])
    assert main(["convert", str(source), str(repaired), "--repair"]) == 0
    assert "1: repaired: ORG '口腔医院' at [3, 7) overlapped a longer entity" in capsys.readouterr().err
    assert read_sentences(repaired, nested=True)[0].spans == (gapped, within)


def test_the_parts_of_a_folder_of_parquet_files_are_read_in_order(tmp_path):
    folder = tmp_path / "table"
    (folder / "year=2024").mkdir(parents=True)
    texts = ["在云南", "在北京", "在上海"]
    for name, text in zip(("part-0.parquet", "part-1.parquet", "year=2024/part-0.parquet"), texts, strict=True):
        write_documents(folder / name, [Document(text, (Span(1, 3, "LOC"),))])
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    write_documents(folder / "_temporary" / "part-9.parquet", [Document("没写完")])
    (folder / "readme.txt").write_text("不是文档", encoding="utf-8")
    assert find_format(folder) == "parquet"
    for format in ("auto", "parquet"):
        read = read_documents(folder, format=format)
        assert [d.text for d in read] == texts and all(d.spans == (Span(1, 3, "LOC"),) for d in read)
    assert main(["convert", str(folder), str(tmp_path / "all.jsonl")]) == 0
    assert [s.text for s in read_sentences(tmp_path / "all.jsonl")] == texts


def test_a_folder_of_tokens_and_tags_in_parquet_is_read_as_such(tmp_path):
    folder = tmp_path / "train"
    folder.mkdir()
    for number in range(2):
        pq.write_table(pa.Table.from_pylist([HF]), folder / f"train-{number}.parquet")
    assert find_format(folder) == "hugging-face"
    assert [d.spans for d in read_documents(folder)] == [SPANS, SPANS]


def test_a_brat_folder_may_hold_parquet_files_as_well(tmp_path):
    folder = tmp_path / "brat"
    write_documents(folder, [Document(TEXT, SPANS)], format="brat")
    write_documents(folder / "copy.parquet", [Document("别的")])
    assert [d.text for d in read_documents(folder)] == [TEXT]


def test_a_folder_without_documents_is_named(tmp_path):
    with pytest.raises(DataError, match=r"is a folder without documents; expected a file, .* in one format"):
        read_documents(tmp_path)
    with pytest.raises(DataError, match=r"is a folder without files of format parquet \(\.parquet\)"):
        read_documents(tmp_path, format="parquet")
    with pytest.raises(DataError, match=r"without files of format doccano \(\.jsonl, \.ndjson, \.json\)"):
        read_documents(tmp_path, format="doccano")


@pytest.mark.parametrize(
    ("format", "suffix"),
    [
        ("jsonl", ".jsonl"), ("jsonl", ".ndjson"), ("cluener", ".json"), ("doccano", ".jsonl"), ("csv", ".csv"),
        ("label-studio", ".json"), ("displacy", ".json"), ("tsv", ".tsv"), ("bmes", ".bmes"), ("conll", ".txt"),
    ],
)  # fmt: skip
def test_the_files_of_a_folder_are_read_in_order(tmp_path, format, suffix):
    folder = tmp_path / "parts"
    (folder / ".cache").mkdir(parents=True)
    own = [Document("张三去北京。", (Span(0, 2, "PER"), Span(3, 5, "LOC"))), Document("李四。", (Span(0, 2, "PER"),))]
    for number, document in enumerate(own):
        write_documents(folder / f"part-{number}{suffix}", [document], format=format)
    write_documents(folder / ".cache" / f"part-9{suffix}", own, format=format)
    (folder / f"part-empty{suffix}").touch()
    if suffix != ".txt":
        (folder / "readme.txt").write_text("不是文档", encoding="utf-8")
        assert [(d.text, d.spans) for d in read_documents(folder)] == [(d.text, d.spans) for d in own]
        assert [s.text for s in read_sentences(folder)] == [d.text for d in own]
    assert [d.text for d in read_documents(folder, format=format)] == [d.text for d in own]
    assert [s.spans for s in read_sentences(folder, format=format)] == [d.spans for d in own]


def test_a_folder_of_several_formats_is_told(tmp_path):
    for name in ("a.jsonl", "b.jsonl", "c.csv"):
        write_documents(tmp_path / name, [Document(TEXT, SPANS)])
    with pytest.raises(DataError, match=r"has files of several formats: csv \(1\), jsonl \(2\); give the format"):
        read_documents(tmp_path)
    assert len(read_documents(tmp_path, format="jsonl")) == 2 and len(read_documents(tmp_path, format="csv")) == 1


@pytest.mark.parametrize("format", ["txt", "csv"])
def test_what_annotate_wrote_is_read_without_rejected_rows(tmp_path, capsys, format):
    rows = ["text", "张桂梅在云南。", "小明去北京。", "长" * 50]
    (tmp_path / f"in.{format}").write_text("\n".join(rows[format == "txt" :]) + "\n", encoding="utf-8")
    options = ["--part-rows", "1", "--max-chars", "40"]
    assert main(["annotate", str(tmp_path / f"in.{format}"), str(tmp_path / "out"), *options]) == 0
    assert list((tmp_path / "out" / "rejected").iterdir())
    assert main(["convert", str(tmp_path / "out"), str(tmp_path / "all.bmes")]) == 0
    assert "2 documents" in capsys.readouterr().out


@pytest.mark.parametrize(
    "names", [("train.jsonl", "test.jsonl"), ("data/dev-0.csv", "data/train-0.csv"), ("val/0.bio", "test/0.bio")]
)
def test_several_splits_are_not_read_as_one(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_documents(tmp_path / name, [Document("张三。", (Span(0, 2, "PER"),))])
    with pytest.raises(DataError, match=r"several splits \((dev|test), (train|val)\), which .*; expected one of them"):
        read_documents(tmp_path)
    one = tmp_path / names[0]
    assert len(read_documents(one if one.parent == tmp_path else one.parent if "/0" in names[0] else one)) == 1


def test_the_format_of_every_file_counts(tmp_path):
    write_documents(tmp_path / "b.jsonl", [Document(TEXT, SPANS)], format="doccano")
    (tmp_path / "a.jsonl").write_text("\n", encoding="utf-8")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b""))
    assert [d.spans for d in read_documents(tmp_path)] == [SPANS]
    write_documents(tmp_path / "c.JSON.GZ", [Document(TEXT, SPANS)], format="jsonl")
    with pytest.raises(DataError, match=r"several formats: doccano \(1\), jsonl \(1\); give the format"):
        read_documents(tmp_path)


def test_columns_in_txt_files_are_read_as_such(tmp_path):
    for name in ("a.txt", "b.txt"):
        write_documents(tmp_path / name, [Document("张三。", (Span(0, 2, "PER"),))], format="conll")
    assert find_format(tmp_path) == "conll"
    assert [s.spans for s in read_sentences(tmp_path)] == [(Span(0, 2, "PER"),)] * 2
    (tmp_path / "notes.txt").write_text("一段没有标注的文字", encoding="utf-8")
    assert find_format(tmp_path) == "brat"


def test_hidden_files_of_a_brat_folder_are_not_read(tmp_path):
    write_documents(tmp_path / "brat", [Document(TEXT, SPANS)], format="brat")
    (tmp_path / "brat" / ".checkpoints").mkdir()
    for name in ("._000001.txt", ".checkpoints/000001.txt"):
        (tmp_path / "brat" / name).write_text("别的", encoding="utf-8")
    assert [d.text for d in read_documents(tmp_path / "brat")] == [TEXT]
