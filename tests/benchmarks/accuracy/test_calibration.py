"""Calibrations by domain and over all domains, and what `recall=` finds on random halves."""

from __future__ import annotations

import json
from functools import partial

import pytest
import tiny

from benchmarks.__main__ import main
from benchmarks.accuracy import coverage, domains
from cige.api import NER
from cige.data import write_sentences
from cige.data.source_types import SourceTypes, TypeTree
from cige.errors import CigeError
from cige.tagging.calibrating import FLOOR, calibration_of, read_labelled
from cige.tagging.selection import Request, all_candidates
from cige.training.sources import Source

SAME = SourceTypes(map={name: (name,) for name in ("PER", "LOC", "ORG")}, annotated=("PER", "LOC", "ORG"))


near = partial(pytest.approx, abs=1e-6)  # scores of batches and of single texts


@pytest.fixture(scope="module")
def dev():
    return tiny.sentences(60, seed=11, new_name_prob=0.5)


def test_the_general_calibration_is_that_of_all_domains_together(ner, dev):
    groups = {"one": ("a",), "two": ("b", "c")}
    parts = {"a": dev[:20], "b": dev[20:30], "c": dev[30:]}
    sources = {name: Source(name, [], [SAME.read(s) for s in own], types=SAME) for name, own in parts.items()}
    found = domains.general_calibrations(ner, sources, groups, {})
    assert set(found) == {"fine", "coarse"}
    for types, calibration in found.items():
        own = calibration_of(read_labelled(ner, dev, types=types))
        assert calibration.thresholds == near(own.thresholds) and calibration.n_entities == own.n_entities
        assert calibration.label_thresholds.keys() == own.label_thresholds.keys()
        assert [p for p, _ in calibration.knots] == near([p for p, _ in own.knots])


def test_a_set_is_read_by_the_tagger_that_was_trained_without_it_training_sentences_too(ner, dev):
    read = []

    class Other(NER):  # the same model, which notes what it reads
        def stream(self, texts, *args, **options):
            texts = list(texts)
            read.extend(texts)
            return super().stream(texts, *args, **options)

    own = [SAME.read(s) for s in dev]
    sources = {"a": Source("a", [], own[:20], types=SAME), "b": Source("b", own[30:], own[20:30], types=SAME)}
    found = domains.general_calibrations(ner, sources, {"one": ("a", "b")}, {"b": Other(ner.model)})
    assert set(read) == {s.text for s in own[20:]}
    assert found["fine"].n_entities == calibration_of(read_labelled(ner, dev, types="fine")).n_entities
    with pytest.raises(CigeError, match="NAME=MODEL"):
        domains.taggers_of(["cmner"], {"cmner"})
    with pytest.raises(CigeError, match="they are weibo"):
        domains.taggers_of(["cmner=m"], {"weibo"})


def test_a_span_whose_set_annotates_a_parent_type_is_judged_once(ner, dev):
    things = SourceTypes(map={name: ("THING",) for name in ("PER", "LOC", "ORG")}, annotated=("THING",))
    tree = TypeTree({name: "THING" for name in ("PER", "LOC", "ORG")})
    source = Source("things", [], [things.read(s) for s in dev], types=things, tree=tree)
    request = all_candidates(Request.of(types="fine"), ner.labels, ner.label_facts, floor=FLOOR)
    several = 0
    for sentence, reading in zip(dev, domains.readings_of(ner, source, "fine"), strict=True):
        [everything] = ner.stream([sentence.text], request)
        highest: dict[tuple[int, int], float] = {}
        for e in everything:
            highest[e.start, e.end] = max(e.score, highest.get((e.start, e.end), 0))
        several += len(everything) > len(highest)
        gold = {(span.start, span.end) for span in sentence.spans}
        for right in (True, False):
            expected = sorted(p for key, p in highest.items() if (key in gold) == right)
            assert sorted(p for p, is_right in reading.candidates if is_right == right) == near(expected)
        assert [p for _, p in reading.gold] == near([highest.get(key, 0.0) for key in sorted(gold)])
    assert several, "no span has two types"


@pytest.mark.parametrize("given", [[], ["--types", "fine"]])
def test_coverage_is_of_the_types_that_are_asked_for(ner, dev, given, tmp_path, monkeypatch, capsys):
    asked = []

    def reading(model, sentences, **options):
        asked.append(options["types"])
        return read_labelled(model, sentences, **options)

    write_sentences(tmp_path / "dev.jsonl", dev)
    monkeypatch.setattr(coverage, "load", lambda name: ner)
    monkeypatch.setattr(coverage, "read_labelled", reading)
    options = ["--data", str(tmp_path / "dev.jsonl"), "--labels", "PER=PER", "--splits", "3"]
    assert main(["coverage", *options, "--json", str(tmp_path / "out.json"), *given]) == 0
    assert asked == [given[-1] if given else "coarse"]
    rows = {row["what"]: row for row in json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["cases"]}
    assert 0 < rows["recall 0.8"]["mean"] <= 100 and rows["error after"]["splits"] == 3
