"""Other programs at the seam: what each gives becomes spans of the text it was given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks.accuracy import peers
from benchmarks.parts import programs
from cige.data.sentence import Sentence, Span
from cige.errors import CigeError

TEXT = "李明 在北京大学工作"
EXPECTED = [[Span(0, 2, "PER"), Span(4, 8, "ORG")]]


def module(monkeypatch, name: str, **members) -> None:
    made = ModuleType(name)
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, name, made)


def test_words_with_tags():
    words = [("李明", "nr"), (" ", "x"), ("在", "p"), ("北京大学", "nt"), ("工作", "v")]
    assert programs.spans_of_words(words, programs.JIEBA) == EXPECTED[0]


def test_hanlp(monkeypatch):
    def load(name):
        assert name == "weights"
        answer = {
            "tok/fine": [["李明", "在", "北京", "大学", "工作"]],
            "ner/msra": [[("李明", "PERSON", 0, 1), ("北京大学", "ORGANIZATION", 2, 4), ("今天", "DATE", 0, 1)]],
        }
        return lambda texts, tasks: answer if (texts, tasks) == ([TEXT], "ner/msra") else None

    mtl = SimpleNamespace(SMALL="weights")
    module(monkeypatch, "hanlp", load=load, pretrained=SimpleNamespace(mtl=mtl))
    assert programs.hanlp("SMALL").read([TEXT]) == EXPECTED


def test_ltp(monkeypatch):
    output = SimpleNamespace(ner=[[("Nh", "李明"), ("Ni", "北京大学")]])
    module(monkeypatch, "ltp", LTP=lambda model: SimpleNamespace(pipeline=lambda texts, tasks: output))
    assert programs.ltp("LTP/small").read([TEXT]) == EXPECTED


def test_spacy(monkeypatch):
    entities = [
        SimpleNamespace(start_char=0, end_char=2, label_="PERSON"),
        SimpleNamespace(start_char=4, end_char=8, label_="ORG"),
        SimpleNamespace(start_char=8, end_char=10, label_="DATE"),
    ]
    pipeline = SimpleNamespace(pipe=lambda texts, batch_size: [SimpleNamespace(ents=entities) for _ in texts])
    module(monkeypatch, "spacy", load=lambda model: pipeline)
    assert programs.spacy("zh_core_web_sm").read([TEXT]) == EXPECTED


def test_gliner(monkeypatch):
    found = [{"start": 0, "end": 2, "label": "person"}, {"start": 4, "end": 8, "label": "organization"}]
    model = SimpleNamespace(predict_entities=lambda text, labels, threshold: found)
    module(monkeypatch, "gliner", GLiNER=SimpleNamespace(from_pretrained=lambda name: model))
    assert programs.gliner("urchade/gliner_multi-v2.1").read([TEXT]) == EXPECTED


def test_lac_behind_its_pipe(monkeypatch, tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    words = [['李明', ' ', '在', '北京大学', '工作'], ['PER', 'w', 'p', 'ORG', 'v']]\n"
        "    print(json.dumps([[words for _ in json.loads(line)[0]], 1.5]), flush=True)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(programs, "LAC_WORKER", worker)
    program = programs.lac(sys.executable)
    assert program.read([TEXT]) == EXPECTED and program.processor_seconds() == 1.5


def test_cige_in_a_process_of_its_own_without_pytorch():
    program = programs.alone("cige", name="ours")
    assert program.name == "ours" and program.read([TEXT]) == EXPECTED == programs.cige().read([TEXT])
    seconds = program.processor_seconds()
    program.read([TEXT] * 64)
    assert program.processor_seconds() > seconds
    code = "import sys, benchmarks.parts.program_worker; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(programs.__file__).parents[2])


def test_texts_in_the_order_of_their_length_have_their_own_answers():
    given = []

    def find(texts, batch_size):
        given.append((texts, batch_size))
        return [[Span(0, len(text), "PER")] for text in texts]

    program = programs.sorted_by_length(programs.Program("LAC", find, lambda: 7.0))
    assert program.read(["三个字", "一", "", "两字"], 2) == [[Span(0, n, "PER")] for n in (3, 1, 0, 2)]
    assert given == [(["", "一", "两字", "三个字"], 2)]
    assert (program.name, program.processor_seconds()) == ("LAC, sorted", 7.0)


def test_a_worker_that_ends_is_told(monkeypatch, tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(programs, "LAC_WORKER", worker)
    with pytest.raises(CigeError, match="ended with code 3"):
        programs.lac(sys.executable)


def test_parts_that_are_not_in_the_text():
    with pytest.raises(CigeError, match="not in what is left"):
        list(programs.located("北京", ["北京", "北京"]))


def test_rows_and_tables():
    half = programs.Program("half", lambda texts, n: [[Span(0, 2, "PER"), Span(0, 1, "LOC")] for _ in texts])
    sentence = Sentence("李明在北京", (Span(0, 2, "PER"), Span(3, 5, "ORG")))
    data = peers.PeerSet("made dev", [sentence], ("PER", "ORG"))
    row = peers.row_of(half, data)
    assert (row["f1"], row["PER"], row["ORG"]) == (66.67, 100.0, 0.0)  # LOC is not annotated there
    table = peers.as_markdown([row])
    assert "| made dev | **66.7** (100.0 / – / 0.0) |" in table


def test_each_program_has_a_process_to_itself(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(programs, "alone", lambda *given, name=None: asked.append((*given, name)))
    monkeypatch.setattr(programs, "lac", lambda python: asked.append(python))
    monkeypatch.setattr(peers, "use_threads", lambda n: None)
    monkeypatch.setattr(peers, "read_set", lambda *given: None)
    monkeypatch.setattr(peers, "row_of", lambda program, data: {})
    options = {"model": "own", "lac_python": "python", "spacy": "zh_core_web_sm", "gliner": "multi"}
    assert list(peers.bench(data_dir=tmp_path, only=["weibo"], **options)) == [{}] * 5
    others = [("spacy", "zh_core_web_sm", "spaCy"), ("gliner", "multi", "GLiNER")]
    assert asked == [("cige", "own", None), ("jieba", None), "python", *others]
    assert all(callable(getattr(programs, program)) for program, *_ in others)


def test_labels_are_mapped_and_what_a_set_does_not_annotate_is_left_out(tmp_path):
    (tmp_path / "ner" / "cmner").mkdir(parents=True)
    (tmp_path / "ner" / "types.json").write_text(
        '{"cmner": {"annotated": ["PER", "ORG"], "map": {"NAME": "PER", "FIRM": "COMPANY", "SPOT": "LOC", "X": null}}}'
    )
    from cige.data import write_sentences

    spans = (Span(0, 1, "NAME"), Span(1, 2, "FIRM"), Span(2, 3, "SPOT"), Span(3, 4, "X"))
    write_sentences(tmp_path / "ner" / "cmner" / "train.bmes.xz", [Sentence("甲乙丙丁 ", spans)])
    found = peers.read_set("cmner", "train", tmp_path)
    assert found.types == ("PER", "ORG")
    assert found.sentences == [Sentence("甲乙丙丁 ", (Span(0, 1, "PER"), Span(1, 2, "ORG")))]
    with pytest.raises(CigeError, match="nothing on weibo"):
        peers.read_set("weibo", "train", tmp_path)
