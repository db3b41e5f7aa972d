"""Which entities are reported, under which labels, and with which scores."""

from __future__ import annotations

from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
import tiny

from cige.api import NER
from cige.data.tags import allowed_transitions, tag_set, tags_to_spans
from cige.entities.calibration import Calibration
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.lattice.lattice import Lattice
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.prediction import decode_spans
from cige.tagging.selection import Request, Selection, select, with_silent_labels

FACTS = LabelFacts(
    parents={"COMPANY": "ORG", "BANK": "COMPANY", "ORG": "ORG_ANY", "PER": "PER_ANY", "PER_NOM": "PER_ANY"},
    silent=frozenset({"PER_NOM", "PER_ANY"}),
)
LABELS = ["BANK", "COMPANY", "ORG", "PER", "PER_ANY", "PER_NOM"]


def reported(**options):
    return select(Request.of(**options), LABELS, FACTS).reported


def test_silent_labels_are_reported_where_they_are_named():
    assert reported() == {label: label for label in ("BANK", "COMPANY", "ORG", "PER")}
    assert reported(labels=["PER_NOM", "ORG"]) == {"PER_NOM": "PER_NOM", "ORG": "ORG"}


def test_a_users_word_has_the_users_label_unless_others_were_requested():
    best, named = (select(Request.of(**options), LABELS, FACTS) for options in ({}, {"labels": ["ORG"]}))
    assert [best.name_of_word(label, LABELS) for label in ("PER", "PER_NOM", "DRUG")] == ["PER", "PER_NOM", "DRUG"]
    assert best.name_of("PER_NOM", LABELS) is None
    assert [named.name_of_word(label, LABELS) for label in ("ORG", "PER", "DRUG")] == ["ORG", None, None]


def test_coarse_labels_are_the_topmost_kinds():
    assert reported(types="coarse") == {"BANK": "ORG", "COMPANY": "ORG", "ORG": "ORG", "PER": "PER"}
    assert reported(types="coarse", labels=["ORG"]) == {"BANK": "ORG", "COMPANY": "ORG", "ORG": "ORG"}
    assert reported(types="coarse", labels=["PER_NOM"]) == {"PER_NOM": "PER_NOM"}


def test_a_label_that_is_not_reported_is_an_error():
    with pytest.raises(ModelError, match=r"no label COMPANI; .*types='fine'.*COMPANY.*did you mean COMPANY\?"):
        reported(labels=["COMPANI"])
    with pytest.raises(ModelError, match="no label COMPANY; with types='coarse' the model reports ORG, PER"):
        reported(types="coarse", labels=["COMPANY"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "PER"}, "expected a list of labels"),
        ({"min_score": 1.5}, "min_score=1.5; expected a probability"),
        ({"min_score": "high"}, "min_score='high'; expected a probability"),
        ({"min_score": None}, "min_score=None; expected a probability"),
        ({"labels": 5}, "labels=5; expected a list of labels"),
        ({"labels": ["PER", None]}, r"labels=\['PER', None\]; expected a list of labels"),
        ({"recall": "all"}, "recall='all'; expected a share"),
        ({"recall": 0.0}, "expected a share between 0 and 1"),
        ({"types": "rough"}, "expected one of 'fine', 'coarse'"),
        ({"recall": 1.0}, "expected a share between 0 and 1"),
    ],
)
def test_values_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        Request.of(**options)


def test_recall_needs_a_calibration_that_reaches_it():
    with pytest.raises(ModelError, match="cige calibrate MODEL DATA"):
        reported(recall=0.9)
    calibration = Calibration(((0.0, 0.0), (1.0, 1.0)), {0.8: 0.3, 0.9: 0.1}, {"ORG": {0.9: 0.2, 0.95: 0.05}})
    facts = LabelFacts(calibration={"fine": calibration})
    found = select(Request.of(recall=0.85), ["ORG", "PER"], facts)
    assert found.thresholds == {"ORG": 0.2, "PER": 0.1} and found.overlapping
    with pytest.raises(ModelError, match=r"reaches 0\.9; ask for less"):
        select(Request.of(recall=0.95), ["ORG", "PER"], facts)
    coarse = select(Request.of(recall=0.85, types="coarse"), ["ORG", "PER"], facts)  # no kinds: the same labels
    assert coarse.thresholds == found.thresholds


def model_of(labels, scheme, **facts):
    tags = tag_set(labels, scheme)
    start, between, end = (np.where(allowed, 0.0, -np.inf) for allowed in allowed_transitions(tags))
    crf = NumpyCRF(start=start, transitions=between, end=end)
    return SimpleNamespace(tags=tags, labels=labels, scheme=scheme, crf=crf, label_facts=LabelFacts(**facts))


def probabilities(model, emissions):
    """{(start, end, label): probability}, by all tag sequences one after the other."""
    total, holding, n = 0.0, {}, emissions.shape[1]
    for path in product(range(len(model.tags)), repeat=n):
        score = model.crf.start[path[0]] + model.crf.end[path[-1]]
        score += sum(emissions[0, t, k] for t, k in enumerate(path))
        score += sum(model.crf.transitions[a, b] for a, b in pairwise(path))
        total += np.exp(score)
        for span in tags_to_spans([model.tags[k] for k in path], model.scheme):
            key = span.start, span.end, span.label
            holding[key] = holding.get(key, 0.0) + np.exp(score)
    return {key: weight / total for key, weight in holding.items()}


@pytest.mark.parametrize("scheme", ["BIO", "BMES"])
@pytest.mark.parametrize("threshold", [0.001, 0.05, 0.4])
def test_candidates_are_all_spans_that_are_probable_enough(scheme, threshold):
    model = model_of(["A", "B"], scheme, parents={"B": "A"}, max_lengths={"B": 2})
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4):
        emissions = rng.normal(size=(1, n, len(model.tags))) * 1.5
        lattice = Lattice("字" * n, np.zeros((0, 3), np.int32), 0)
        expected = {k: p for k, p in probabilities(model, emissions).items() if k[2] == "A" or k[1] - k[0] <= 2}
        fine = Selection({"A": "A", "B": "B"}, thresholds={"A": threshold, "B": threshold})
        found = {(s.start, s.end, s.label): s.score for s in decode_spans(model, emissions, [lattice], fine)[0]}
        assert found == pytest.approx({k: p for k, p in expected.items() if p >= threshold})
        summed: dict = {}
        for (start, end, _), p in probabilities(model, emissions).items():  # a B that is reported as A may be as long
            summed[start, end, "A"] = summed.get((start, end, "A"), 0.0) + p
        coarse = Selection({"A": "A", "B": "A"}, thresholds={"A": threshold})
        found = {(s.start, s.end, s.label): s.score for s in decode_spans(model, emissions, [lattice], coarse)[0]}
        assert found == pytest.approx({k: p for k, p in summed.items() if p >= threshold})


@pytest.mark.parametrize(
    ("text", "tags", "word"),
    [("字字》", "BME", "字字"), ("看 字字", "OBME", "字字"), ("aBC型", "SOOO", "a"), ("iPhone", "BMMMEO", "iPhone")],
)
def test_a_recall_reports_what_the_best_tags_do_with_the_same_edges(text, tags, word):
    model = model_of(["A"], "BMES")
    emissions = np.zeros((1, len(text), len(model.tags)))
    for place, tag in enumerate(tags):
        emissions[0, place, model.tags.index(tag if tag == "O" else f"{tag}-A")] = 8.0
    lattice = Lattice(text, np.zeros((0, 3), np.int32), 0)
    best = decode_spans(model, emissions, [lattice], Selection({"A": "A"}))[0]
    assert [text[span.start : span.end] for span in best] == [word]
    found = decode_spans(model, emissions, [lattice], Selection({"A": "A"}, thresholds={"A": 1e-9}))[0]
    assert len({span[:3] for span in found}) == len(found) > 1 and best[0] in found
    assert decode_spans(model, emissions, [lattice], Selection({"A": "A"}, thresholds={"A": 0.9}))[0] == best


def test_a_coarse_score_is_the_sum_over_its_kinds_and_calibrated():
    model = model_of(["A", "B", "C"], "BMES", parents={"B": "A"})
    rng = np.random.default_rng(1)
    emissions = rng.normal(size=(1, 4, len(model.tags)))
    emissions[:, :, 0] -= 3
    lattice = Lattice("字字字字", np.zeros((0, 3), np.int32), 0)
    exact = probabilities(model, emissions)
    fine = decode_spans(model, emissions, [lattice], select(Request(), model.labels, model.label_facts))[0]
    coarse = decode_spans(
        model, emissions, [lattice], select(Request(types="coarse"), model.labels, model.label_facts)
    )[0]
    assert [(s.start, s.end) for s in fine] == [(s.start, s.end) for s in coarse] and fine
    for a, b in zip(fine, coarse, strict=True):
        assert a.score == pytest.approx(exact[a.start, a.end, a.label])
        kinds = ["A", "B"] if a.label in "AB" else ["C"]
        assert b.label == ("A" if a.label in "AB" else "C")
        assert b.score == pytest.approx(sum(exact.get((a.start, a.end, kind), 0.0) for kind in kinds))
    half = Calibration(((0.0, 0.0), (1.0, 0.5)))
    chosen = Selection({"A": "A", "B": "B", "C": "C"}, calibration=half)
    calibrated = decode_spans(model, emissions, [lattice], chosen)[0]
    assert [s.score for s in calibrated] == pytest.approx([s.score / 2 for s in fine])


TEXT = "李明在北京。王小红是罗氏公司的经理，他来自南京市。"


def test_options_of_a_call(ner):
    everything = ner(TEXT)
    assert [e.label for e in ner(TEXT, labels=["PER"])] == ["PER", "PER"]
    lowest = min(e.score for e in everything)
    assert ner(TEXT, min_score=np.nextafter(lowest, 1)) == [e for e in everything if e.score > lowest]
    assert list(ner.pipe([TEXT], labels=["LOC"], types="coarse")) == [[e for e in everything if e.label == "LOC"]]
    assert [[e.label for e in found] for found in ner([TEXT, ""], labels=["ORG"])] == [["ORG"], []]
    with pytest.raises(ModelError, match="no label PERS"):
        ner.pipe([TEXT], labels=["PERS"])  # at once, not when the first text is read
    with pytest.raises(ModelError, match="calibrated"):
        ner(TEXT, recall=0.9)


def test_recall_reports_more_and_keeps_offsets(ner):
    own = NER(tiny.trained_model())
    own.model.label_facts = LabelFacts(calibration={"fine": Calibration(((0.0, 0.0), (1.0, 1.0)), {0.9: 1e-4})})
    found = own(TEXT, recall=0.9)
    best = {(e.start, e.end, e.label) for e in own(TEXT)}
    assert best < {(e.start, e.end, e.label) for e in found}
    assert all(TEXT[e.start : e.end] == e.text and e.score >= 1e-4 for e in found)
    assert found == sorted(found, key=lambda e: (e.start, e.end, e.label))
    explained = own.explain(TEXT, request=Request.of(recall=0.9), removals=False)
    assert [e.entity for e in explained.entities] == found


def test_a_model_that_decodes_by_itself_reports_the_same(tmp_path):
    """The compiled runtime finds best readings only; whatever else counts changes its answers too."""
    from cige.api import load

    made = tiny.trained_model()
    made.label_facts = LabelFacts(max_lengths={"ORG": 3}, calibration={"fine": Calibration(((0.0, 0.0), (1.0, 0.5)))})
    made.save(tmp_path / "model")
    texts = [TEXT, "李明\t北京", "@李明😀在北京 南京市", "《李明》在“罗氏公司”", ""]
    own, torch = (load(tmp_path / "model", backend=b, precision="float32") for b in ("native", "torch"))
    for options in ({}, {"labels": ["PER"]}, {"min_score": 0.3}, {"types": "coarse"}):
        for a, b in zip(own.pipe(texts, **options), torch.pipe(texts, **options), strict=True):
            assert [(e.start, e.end, e.label) for e in a] == [(e.start, e.end, e.label) for e in b]
            assert [e.score for e in a] == pytest.approx([e.score for e in b], abs=1e-3)
            assert all(e.score <= 0.5 and (e.label != "ORG" or len(e.text) <= 3) for e in a)


def test_labels_that_data_have_are_reported_though_silent():
    labels = ["LOC", "PER", "PER_NOM", "SCENE"]
    facts = LabelFacts(parents={"SCENE": "LOC"}, silent=frozenset({"PER_NOM", "SCENE"}))
    request = with_silent_labels(Request.of(), {"SCENE", "LOC", "OTHER"}, labels, facts)
    assert request.labels == ("LOC", "PER", "SCENE")
    assert select(request, labels, facts).reported == {"LOC": "LOC", "PER": "PER", "SCENE": "SCENE"}
    assert select(Request.of(), labels, facts).reported == {"LOC": "LOC", "PER": "PER", "SCENE": "LOC"}
    for unchanged in (Request.of(labels=["PER"]), Request.of(min_score=0.5)):
        assert with_silent_labels(unchanged, {"SCENE"} if unchanged.labels else {"LOC"}, labels, facts) == unchanged


def test_a_label_may_be_as_long_as_what_it_is_reported_as():
    limits = {"LOC": 61, "SCENE": 30, "LOC_NOM": 10}
    assert Selection({"LOC": "LOC", "SCENE": "LOC"}).max_lengths(limits) == limits | {"SCENE": 61}
    assert Selection({"LOC": "LOC", "SCENE": "SCENE"}).max_lengths(limits) == limits
    assert Selection({"LOC": "LOC", "SCENE": "LOC"}).max_lengths({"SCENE": 30}) == {}


def test_the_same_request_is_worked_out_once_and_another_anew(ner):
    first = ner.select(Request.of())
    assert ner.select(Request.of(min_score=0.0)) is first
    strict = ner.select(Request.of(min_score=0.5))
    assert strict.min_score == 0.5 and ner.select(Request.of()) == first
    assert ner.select(Request.of(labels=first.reported)).named == frozenset(first.reported)
    ner.model.label_facts = LabelFacts(silent=frozenset(ner.labels[:1]))
    assert ner.labels[0] not in ner.select(Request.of()).reported


def test_the_lengths_of_one_model_are_not_those_of_another():
    chosen = Selection({"BANK": "ORG", "COMPANY": "ORG"})
    of_one, of_other = {"BANK": 3, "COMPANY": 5}, {"BANK": 7}
    for of_labels, lengths in 2 * [(of_one, {"BANK": 5, "COMPANY": 5}), (of_other, {})]:
        assert chosen.max_lengths(of_labels) == lengths == chosen.max_lengths(of_labels)
    assert of_one == {"BANK": 3, "COMPANY": 5}
