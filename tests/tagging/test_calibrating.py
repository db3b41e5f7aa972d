"""Calibrating a model: what it makes of labelled sentences, and folders that keep it."""

import json

import pytest
import tiny

from cige.api import NER, load
from cige.cli import main
from cige.data import write_sentences
from cige.data.sentence import Sentence, Span
from cige.entities.calibration import Calibration
from cige.entities.label_facts import LabelFacts
from cige.folders.manifest import read_manifest, update_manifest
from cige.tagging.calibrating import FLOOR, calibration_errors, calibration_of, folds, read_labelled

SENTENCES = tiny.sentences(60, seed=4, new_name_prob=0.5)


def test_readings_are_what_the_model_reports(ner):
    readings = read_labelled(ner, SENTENCES)
    assert [len(r.gold) for r in readings] == [len(s.spans) for s in SENTENCES]
    for sentence, reading in zip(SENTENCES, readings, strict=True):
        best = ner(sentence.text)
        assert [p for p, _ in reading.best] == pytest.approx([e.score for e in best], abs=1e-4)
        keys = {(s.start, s.end, s.label) for s in sentence.spans}
        assert [right for _, right in reading.best] == [(e.start, e.end, e.label) in keys for e in best]
        assert all(p >= FLOOR for p, _ in reading.candidates)
        assert sorted(p for _, p in reading.gold if p) == pytest.approx(
            sorted(p for p, right in reading.candidates if right)
        )


def test_labels_that_the_data_has_not_are_left_out(ner):
    only_per = [Sentence(s.text, tuple(x for x in s.spans if x.label == "PER")) for s in SENTENCES]
    readings = read_labelled(ner, only_per)
    found = list(ner.pipe([s.text for s in SENTENCES], labels=["PER"]))
    assert [len(r.best) for r in readings] == [len(f) for f in found]


def test_folds_are_parts_with_all_others(ner):
    readings = read_labelled(ner, SENTENCES[:13])
    parts = list(folds(readings))
    assert sum(len(part) for part, _ in parts) == 13 and all(len(a) + len(b) == 13 for a, b in parts)
    before, after = calibration_errors(readings)
    assert 0 <= before <= 1 and 0 <= after <= 1
    for few, n in ((readings[:1], "1 sentence"), ([], "0 sentences")):
        with pytest.raises(ValueError, match=f"given {n}; expected two or more"):
            calibration_errors(few)


def test_recall_finds_what_it_promises_on_the_sentences_themselves(ner):
    calibration = calibration_of(read_labelled(ner, SENTENCES))
    own = NER(tiny.trained_model())
    own.model.label_facts = LabelFacts(calibration={"fine": calibration})
    found = own.pipe([s.text for s in SENTENCES], recall=0.6)
    gold = [(k, x.start, x.end, x.label) for k, s in enumerate(SENTENCES) for x in s.spans]
    reported = {(k, e.start, e.end, e.label) for k, entities in enumerate(found) for e in entities}
    assert sum(key in reported for key in gold) >= 0.6 * len(gold)


def test_the_command_changes_the_manifest_alone(tmp_path, capsys):
    tiny.trained_model().save(tmp_path / "model")
    before = read_manifest(tmp_path / "model", kind="cige model", version=1, error=ValueError)
    write_sentences(tmp_path / "dev.bmes", SENTENCES)
    assert main(["calibrate", str(tmp_path / "model"), str(tmp_path / "dev.bmes")]) == 0
    out = capsys.readouterr().out
    assert "uncalibrated error" in out and "60" in out and "calibrated for recall= up to" in out
    after = read_manifest(tmp_path / "model", kind="cige model", version=1, error=ValueError, check_contents=True)
    calibration = Calibration.from_dict(after.pop("calibration")["fine"])
    assert after == before
    opened = load(tmp_path / "model")
    assert opened.label_facts.calibration == {"fine": calibration}
    text = SENTENCES[0].text
    raw = NER(tiny.trained_model())(text)
    assert [e.score for e in opened(text)] == pytest.approx([calibration.score(e.score) for e in raw], abs=1e-3)
    assert len(opened(text, recall=0.9)) >= len(opened(text, recall=0.8))
    opened.save_pretrained(tmp_path / "again")
    assert (
        json.loads((tmp_path / "again" / "manifest.json").read_text())["calibration"]["fine"] == calibration.to_dict()
    )


def test_a_domain_has_scores_of_its_own(tmp_path, capsys):
    folder = tmp_path / "model"
    tiny.trained_model().save(folder)
    write_sentences(tmp_path / "all.bmes", SENTENCES)
    write_sentences(tmp_path / "posts.bmes", [Sentence(s.text, s.spans[:1]) for s in SENTENCES])
    assert main(["calibrate", str(folder), str(tmp_path / "all.bmes")]) == 0
    assert main(["calibrate", str(folder), str(tmp_path / "posts.bmes"), "--domain", "posts"]) == 0
    text = max((s.text for s in SENTENCES), key=lambda text: len(load(folder)(text)))
    general, posts = load(folder), load(folder, domain="posts")
    assert [(e.start, e.label) for e in general(text)] == [(e.start, e.label) for e in posts(text)]
    assert sum(e.score for e in posts(text)) < sum(e.score for e in general(text)), "half of it is wrong there"
    general.save_pretrained(tmp_path / "again")
    assert [e.score for e in load(tmp_path / "again", domain="posts")(text)] == [e.score for e in posts(text)]
    capsys.readouterr()
    assert main(["predict", text, "--model", str(folder), "--domain", "post"]) == 2
    assert "no domain 'post'; the model is calibrated for posts" in capsys.readouterr().err


def test_data_without_a_label_of_the_model_is_refused(tmp_path, capsys):
    tiny.model().save(tmp_path / "model")
    write_sentences(tmp_path / "dev.bmes", [Sentence("张三", (Span(0, 2, "TITLE"),))])
    assert main(["calibrate", str(tmp_path / "model"), str(tmp_path / "dev.bmes")]) == 2
    assert "no label of the model for TITLE" in capsys.readouterr().err


def test_a_manifest_keeps_what_is_not_updated(tmp_path):
    (tmp_path / "manifest.json").write_text('{"kind": "x", "files": {}, "a": 1}')
    update_manifest(tmp_path, a=2, b=[3])
    assert json.loads((tmp_path / "manifest.json").read_text()) == {"kind": "x", "files": {}, "a": 2, "b": [3]}
