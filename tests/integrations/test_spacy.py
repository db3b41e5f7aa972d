"""The spaCy component, in the real spaCy."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from spacy import displacy
from spacy.tokens import Doc, DocBin
from spacy.training import Example

import cige.integrations.spacy as component
from cige import Entity, load
from cige.errors import CigeError
from cige.lexicon.report import WordListWarning

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ["罗氏公司总裁林晓岚从巴塞尔飞抵南京市长江大桥。", "", "😀李明，在 北京\n张三", "今天天气很好"]
WORD_TEXT = "昨天阿拉善贺兰草宣布了新的计划。"


def pipeline(**config):
    nlp = spacy.blank("zh")
    nlp.add_pipe("cige", config=config)
    return nlp


@pytest.fixture(scope="module")
def nlp():
    return pipeline()


def test_entities_are_those_of_the_model(nlp):
    ner = load()
    for text, doc in zip(TEXTS, nlp.pipe(TEXTS, batch_size=2), strict=True):
        expected = [(e.start, e.end, e.label) for e in ner(text)]
        assert [(e.start_char, e.end_char, e.label_) for e in doc.ents] == expected
        assert [(e["start"], e["end"], e["label"]) for e in doc._.cige_entities] == expected
        scores = [e.score for e in ner(text)]
        assert doc.spans["cige"].attrs["scores"] == pytest.approx(scores)
        assert [e._.cige_score for e in doc.ents] == pytest.approx(scores)
    assert [e.text for e in nlp(TEXTS[0]).ents] == [e.text for e in ner(TEXTS[0])]


def test_annotations_of_settings_are_types():
    # spaCy reads them by confection, which before version 1 knows no names of types.
    settings = {name: of for name, of in component.make_component.__annotations__.items() if name != "return"}
    assert "nlp" in settings and not [name for name, of in settings.items() if isinstance(of, str)]


def test_words_of_the_user():
    nlp = pipeline(words={"阿拉善贺兰草": "COMPANY"})
    assert [(e.text, e.label_) for e in nlp(WORD_TEXT).ents] == [("昨天", "TIME"), ("阿拉善贺兰草", "COMPANY")]
    nlp = pipeline()
    nlp.get_pipe("cige").ner.lexicon.add("阿拉善贺兰草", label="COMPANY")
    assert [(e.text, e.label_) for e in nlp(WORD_TEXT).ents] == [("昨天", "TIME"), ("阿拉善贺兰草", "COMPANY")]


def test_lines_of_a_file_that_are_refused_are_warned_of(tmp_path):
    (tmp_path / "words.txt").write_text("铁\n阿拉善贺兰草\n", encoding="utf-8")
    nlp = pipeline(word_files=[str(tmp_path / "words.txt")])
    with pytest.warns(WordListWarning, match=r"1 taken, 1 refused[^$]*line 1: '铁': single character"):
        nlp(WORD_TEXT)


def test_words_of_a_file(tmp_path):
    (tmp_path / "words.txt").write_text("阿拉善贺兰草\tCOMPANY\n", encoding="utf-8")
    nlp = pipeline(word_files=[str(tmp_path / "words.txt")], spans_key=None)
    doc = nlp(WORD_TEXT)
    assert doc.ents[-1].text == "阿拉善贺兰草" and not doc.spans


@pytest.mark.parametrize(
    ("alignment", "expected"),
    [("expand", ["李明在", "北京市民"]), ("contract", ["李明", "北京"][:0]), ("strict", [])],
)
def test_tokens_that_do_not_fit(nlp, alignment, expected):
    """李明 and 北京 are parts of the tokens here; the exact offsets are kept in any case."""
    doc = Doc(nlp.vocab, words=["李明在", "北京市民", "中"], spaces=[False] * 3)
    exact = [(e.start, e.end) for e in load()(doc.text)]
    own = pipeline(alignment=alignment).get_pipe("cige")(doc)
    assert [e.text for e in own.ents] == expected
    assert [(e["start"], e["end"]) for e in own._.cige_entities] == exact and exact[0] == (0, 2)


def test_entities_with_gaps_are_in_the_span_group_alone(monkeypatch):
    """In `doc.ents`, the characters of the gap would be a part of the entity, and what is found there would be lost."""
    nlp = pipeline()
    parts = ((1, 3), (6, 8))
    found = [Entity(1, 8, "ORG", "第一医院", 0.9, parts=parts), Entity(4, 6, "BODY", "口腔", 0.8)]
    monkeypatch.setattr(nlp.get_pipe("cige").finder, "pipe", lambda texts, **_: (found for _ in texts))
    (doc,) = nlp.pipe(["去第一和口腔医院"])
    assert [(e.text, e.label_) for e in doc.ents] == [("口腔", "BODY")]
    assert [(e.text, e.label_) for e in doc.spans["cige"]] == [("第一和口腔医院", "ORG"), ("口腔", "BODY")]
    assert doc._.cige_entities[0]["parts"] == [[1, 3], [6, 8]]


def test_entities_of_others_make_way_or_win():
    def with_ruler(**config):
        nlp = spacy.blank("zh")
        nlp.add_pipe("entity_ruler").add_patterns([{"label": "MINE", "pattern": "林晓"}])
        nlp.add_pipe("cige", config=config)
        return [(e.text, e.label_) for e in nlp(TEXTS[0]).ents]

    assert ("林晓岚", "PER") in with_ruler() and ("林晓", "MINE") not in with_ruler()
    kept = with_ruler(overwrite_ents=False)
    assert ("林晓", "MINE") in kept and ("林晓岚", "PER") not in kept and ("巴塞尔", "LOC") in kept
    assert with_ruler(set_ents=False) == [("林晓", "MINE")]


def test_what_is_reported_is_configured():
    assert {e.label_ for e in pipeline(labels=["PER"])(TEXTS[0]).ents} == {"PER"}
    assert {e.label_ for e in pipeline(types="coarse", labels=["ORG"])(TEXTS[0]).ents} == {"ORG"}
    assert not pipeline(min_score=1.0)(TEXTS[0]).ents
    nlp, text = pipeline(consistent=True), "著名演员杜鹃在北京出席了发布会。随后杜鹃说，明年再来。很多人喜欢杜鹃。"
    for doc, n in ((nlp(text), 3), (next(nlp.pipe([text])), 3), (pipeline()(text), 2)):
        assert [e.text for e in doc.ents].count("杜鹃") == n
    with pytest.raises(CigeError, match="expected one of expand, contract, strict"):
        pipeline(alignment="shrink")
    with pytest.raises(CigeError, match="did you mean PER"):
        pipeline(labels=["PERS"])(TEXTS[0])


def test_pipelines_are_kept_on_disk_with_their_words(tmp_path):
    pipeline(words={"阿拉善贺兰草": "COMPANY"}).to_disk(tmp_path / "nlp")
    config = (tmp_path / "nlp" / "config.cfg").read_text(encoding="utf-8")
    (tmp_path / "nlp" / "config.cfg").write_text(config.replace("model = null", 'model = "no/where"'), encoding="utf-8")
    doc = spacy.load(tmp_path / "nlp")(WORD_TEXT)
    assert [(e.text, e.label_) for e in doc.ents] == [("昨天", "TIME"), ("阿拉善贺兰草", "COMPANY")]


def test_pipelines_are_kept_as_bytes():
    data = pipeline(words=["阿拉善贺兰草"]).to_bytes()
    doc = pipeline().from_bytes(data)(WORD_TEXT)
    assert [e.text for e in doc.ents] == ["昨天", "阿拉善贺兰草"]
    assert not pipeline().from_bytes(pipeline().to_bytes(exclude=["cige"])).get_pipe("cige")._unpacked


def test_a_copy_of_unpacked_bytes_does_not_need_the_original():
    nlp = pipeline().from_bytes(pipeline(words=["阿拉善贺兰草"]).to_bytes())
    pickled, copied = pickle.dumps(nlp), copy.deepcopy(nlp)
    folder = nlp.get_pipe("cige")._unpacked.folder
    del nlp
    gc.collect()
    assert not folder.exists()
    for other in (pickle.loads(pickled), copied):
        assert [e.text for e in other(WORD_TEXT).ents] == ["昨天", "阿拉善贺兰草"]
    small = pickle.dumps(pipeline(min_score=1.0))  # a model in a folder of its own is opened there again
    assert len(small) < 100_000 and not pickle.loads(small)(TEXTS[0]).ents


def test_spacys_evaluation_scores_the_entities(nlp):
    truth = {"entities": [(0, 2, "PER"), (3, 5, "LOC")]}
    scores = nlp.evaluate([Example.from_dict(nlp.make_doc("李明在北京。"), truth)])
    assert scores["ents_f"] == 1.0 and set(scores["ents_per_type"]) == {"PER", "LOC"}


def test_documents_are_kept_with_scores(nlp):
    doc = nlp(TEXTS[0])
    (kept,) = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert kept._.cige_entities == doc._.cige_entities
    assert [e._.cige_score for e in kept.ents] == [e._.cige_score for e in doc.ents] != []


def test_displacy_draws(nlp):
    page = displacy.render(nlp(TEXTS[0]), style="ent", jupyter=False)
    assert "林晓岚" in page and ">PER<" in page.replace("\n", "").replace(" ", "")
    page = displacy.render(nlp(TEXTS[0]), style="span", options={"spans_key": "cige"}, jupyter=False)
    assert page.count("PER") == 1 and page.count("LOC") == 1 and page.count("SCENE") == 1


def test_several_processes(nlp):
    docs = list(nlp.pipe(TEXTS, n_process=2, batch_size=1))
    assert [[e.text for e in doc.ents] for doc in docs] == [[e.text for e in nlp(text).ents] for text in TEXTS]


def test_an_error_goes_to_spacys_handler(nlp, monkeypatch):
    seen = []
    own = pipeline()
    own.set_error_handler(lambda name, pipe, docs, error: seen.append((name, len(docs))))
    own.get_pipe("cige").request["labels"] = ["NONE"]
    assert len(list(own.pipe(TEXTS[:2]))) == 2 and seen == [("cige", 2)]


def test_installed_cige_is_found_by_spacy(tmp_path):
    """The entry point in the package's metadata, with nothing of cige imported by hand."""
    build = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    code = (
        "import sys, spacy\n"
        "assert 'cige' not in sys.modules; nlp = spacy.blank('zh'); nlp.add_pipe('cige')\n"
        "print([e.text for e in nlp('李明在北京。').ents])"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['李明', '北京']", done.stderr


def test_the_module_registers_what_the_metadata_names():
    assert component.make_component.__name__ == "make_component"
    assert "cige" in spacy.blank("zh").factory_names
