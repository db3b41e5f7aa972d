"""GridTagger and GridModel: nested entities over the encoders of all taggers."""

from __future__ import annotations

from dataclasses import replace

import nested_sentences
import numpy as np
import pytest
import tiny
import torch
from tiny_grid import HEAD, model

import cige
from cige.api import NER
from cige.data.batch import collate
from cige.data.gold_spans import GoldRelations, GoldSpans
from cige.data.sentence import Sentence, Span
from cige.entities.scores import score
from cige.errors import DataError, ModelError
from cige.models.bilstm_crf import BiLstmCrfConfig
from cige.models.model import GridModel, LatticeModel
from cige.models.pair_grid_config import PairGridConfig
from cige.models.soft_lexicon import SoftLexiconConfig
from cige.tagging.prediction import decode_spans
from cige.tagging.selection import Selection


def with_scores(made: GridModel, *spans: tuple[int, int, str, float]) -> GridModel:
    """The model with fixed scores of spans for every text; the scores of others are -5."""

    class Fixed(GridModel):
        def emissions(self, lattices):
            n_chars = max(1, max(lattice.n_chars for lattice in lattices))
            scores = np.full((len(lattices), n_chars, HEAD.max_length, len(self.tags)), -5.0, np.float32)
            for start, end, label, value in spans:
                scores[:, start, end - start - 1, self.tags.index(label)] = value
            return scores

    return Fixed(**vars(made))


def shown(entities) -> list[tuple[int, int, str]]:
    return [(entity.start, entity.end, entity.label) for entity in entities]


def test_gold_cells_and_loss():
    made = model()
    sentence = Sentence("北京大学在北京", (Span(0, 2, "LOC"), Span(0, 4, "ORG"), Span(5, 7, "LOC")))
    gold = GoldSpans(made.tags, 6)
    assert gold.ids(sentence).tolist() == [[0, 1, 0], [0, 3, 1], [5, 1, 0]]
    batch = collate([made.vocabulary.encode(x) for x in made.lattices([sentence.text, "好"])])
    cells = torch.tensor([[0, *cell] for cell in gold.ids(sentence).tolist()])
    assert made.tagger.loss(replace(batch, cells=cells)).item() > 0
    with pytest.raises(ValueError, match="gold spans"):
        made.tagger.loss(batch)


@pytest.mark.parametrize(
    ("span", "message"),
    [
        (Span(0, 2, "GPE"), "has the label 'GPE'.*head: crf"),
        (Span(0, 9, "LOC"), r"LOC at \[0, 9\) does not fit"),
        (Span(0, 3, "LOC", ((0, 1), (2, 3))), r"LOC '北市' at \[0, 1\), \[2, 3\) is discontinuous.*scores: relations"),
    ],
)
def test_gold_that_is_refused(span, message):
    with pytest.raises(DataError, match=message):
        GoldSpans(["LOC"], 6).ids(Sentence("北京市", (span,), 3))


def test_longer_entities_have_no_cell():
    assert GoldSpans(["LOC"], 3).ids(Sentence("南京市长江", (Span(0, 4, "LOC"), Span(0, 3, "LOC")))).tolist() == [
        [0, 2, 0]
    ]


CASES = [
    ("flat", tiny.CONFIG),
    ("soft_lexicon", SoftLexiconConfig(lstm_width=16)),
    ("bilstm_crf", BiLstmCrfConfig(lstm_width=16)),
]


@pytest.mark.parametrize(("architecture", "config"), CASES)
@pytest.mark.parametrize("efficient", [False, True])
def test_padding_does_not_change_scores_or_loss(architecture, config, efficient):
    made = model(architecture=architecture, config=config, head=replace(HEAD, efficient=efficient))
    texts = ["李明在北京。", "罗氏公司设在南京市的人和药店里"]
    apart = [made.emissions(made.lattices([text]))[0] for text in texts]
    together = made.emissions(made.lattices(texts))
    for row, text in enumerate(texts):
        for m in range(6):
            n = max(0, len(text) - m)
            np.testing.assert_allclose(together[row, :n, m], apart[row][:n, m], atol=1e-5)
    gold = [np.array([[0, 1, 2]]), np.array([[0, 3, 1], [6, 2, 0]])]
    encoded = [made.vocabulary.encode(lattice) for lattice in made.lattices(texts)]
    with torch.no_grad():
        both = made.tagger.loss(collate(encoded, cells=gold)).item()
        each = [made.tagger.loss(collate([x], cells=[cells])).item() for x, cells in zip(encoded, gold, strict=True)]
    assert both == pytest.approx(sum(each) / 2, rel=1e-5)


def test_best_spans_are_those_with_a_score_above_zero():
    made = model()
    batch, lattices = made.encode(["李明在北京。", "北京"])
    scores = made.emissions(lattices)
    found = made.tagger.best_spans(batch)
    expected = [
        [
            Span(i, i + m + 1, made.tags[k])
            for i in range(lattice.n_chars)
            for m in range(min(6, lattice.n_chars - i))
            for k in range(3)
            if scores[row, i, m, k] > 0
        ]
        for row, lattice in enumerate(lattices)
    ]
    assert found == [sorted(own) for own in expected]


def test_a_saved_model_finds_the_same(tmp_path):
    made = model(head=replace(HEAD, efficient=True))
    made.save(tmp_path / "model")
    loaded = cige.load(tmp_path / "model", backend="torch")
    assert (
        isinstance(loaded.model, GridModel) and loaded.model.pair_grid == made.pair_grid and loaded.label_facts.nested
    )
    texts = ["李明在北京。", "罗氏公司设在南京市"]
    lattices = made.lattices(texts)
    np.testing.assert_array_equal(loaded.model.emissions(lattices), made.emissions(lattices))
    assert loaded(texts) == NER(made)(texts)


def test_the_folder_is_of_its_own_kind(tmp_path):
    model().save(tmp_path / "model")
    with pytest.raises(ModelError, match="holds 'cige nested model', expected a cige model folder; `cige predict"):
        LatticeModel.load(tmp_path / "model")
    tiny.model().save(tmp_path / "crf")
    with pytest.raises(ModelError, match="expected a cige nested model folder"):
        GridModel.load(tmp_path / "crf")


def test_nested_entities_and_the_flat_set():
    ner = NER(with_scores(model(), (0, 2, "LOC", 1.0), (0, 4, "ORG", 2.0), (5, 7, "LOC", 0.5), (5, 6, "PER", -0.1)))
    text = "北京大学在北京"
    assert shown(ner(text)) == [(0, 2, "LOC"), (0, 4, "ORG"), (5, 7, "LOC")]
    assert [round(e.score, 4) for e in ner(text)] == [0.7311, 0.8808, 0.6225]
    assert shown(ner(text, nested=False)) == [(0, 4, "ORG"), (5, 7, "LOC")]
    assert shown(ner(text, min_score=0.7)) == [(0, 2, "LOC"), (0, 4, "ORG")]
    assert shown(ner(text, labels=["LOC"], nested=False)) == [(0, 2, "LOC"), (5, 7, "LOC")]
    assert shown(ner.analyze(text).entities) == shown(ner(text))
    assert list(ner.pipe([text, text], nested=False)) == [ner(text, nested=False)] * 2


def test_options_that_do_not_fit():
    ner = NER(model())
    with pytest.raises(ValueError, match="nested=False"):
        ner("北京", consistent=True)
    with pytest.raises(ValueError, match="given nested=1"):
        ner("北京", nested=1)
    assert ner("北京", consistent=True, nested=False) == ner("北京", nested=False)


def test_labels_that_are_reported_as_one_count_together():
    """Neither label has a probability of one half, but one of the two has."""
    made = with_scores(model(), (0, 2, "LOC", -0.4), (0, 2, "ORG", -0.4), (5, 7, "LOC", -0.4))
    lattices = made.lattices(["北京大学在北京"])
    reported = {"LOC": "NAME", "ORG": "NAME", "PER": "PER"}
    (found,) = decode_spans(made, made.emissions(lattices), lattices, Selection(reported))
    assert [(span.start, span.end, span.label) for span in found] == [(0, 2, "NAME")]
    assert found[0].score == pytest.approx(1 - (1 - 1 / (1 + np.exp(0.4))) ** 2, abs=1e-3)


def test_rules_of_users():
    ner = NER(with_scores(model(), (0, 2, "LOC", 1.0), (0, 4, "ORG", 2.0), (1, 3, "PER", 1.0), (5, 7, "LOC", 0.5)))
    text = "北京大学在北京"
    assert shown(ner(text, words=[cige.UserWord("北京", "GPE", "force")])) == [
        (0, 2, "GPE"), (0, 4, "ORG"), (5, 7, "GPE"),
    ]  # fmt: skip
    assert shown(ner(text, words=[cige.UserWord("北京", None, "block")])) == [(0, 4, "ORG"), (1, 3, "PER")]
    forced = cige.UserWord("北京", "GPE", "force")
    for mode in ("block", "block_exact"):  # nothing but the forced words, and what is not inside the blocked one
        assert shown(ner(text, words=[forced, cige.UserWord("北京大学", None, mode)])) == [(0, 2, "GPE"), (5, 7, "GPE")]
    assert shown(ner(text, words=[forced, cige.UserWord("北京大学", "SCHOOL", "type")])) == [
        (0, 2, "GPE"), (0, 4, "SCHOOL"), (5, 7, "GPE"),
    ]  # fmt: skip
    assert shown(ner(text, words=[cige.UserWord("北京", "GPE", "type")])) == [
        (0, 2, "GPE"), (0, 4, "ORG"), (1, 3, "PER"), (5, 7, "GPE"),
    ]  # fmt: skip


def test_punctuation_and_closed_stretches_are_no_entities():
    ner = NER(with_scores(model(), (0, 2, "LOC", 1.0), (0, 3, "LOC", 1.0), (4, 6, "ORG", 1.0)))
    assert shown(ner("北京，见http://x.cn")) == [(0, 2, "LOC")]


def test_user_words_reach_the_scores():
    made = model()
    lattices = made.lattices(["他在阿拉善"])
    made.lexicon.add("阿拉善")
    assert not np.allclose(made.emissions(lattices), made.emissions(made.lattices(["他在阿拉善"])))


def test_a_nested_model_can_be_explained():
    ner = NER(with_scores(model(), (3, 5, "LOC", 1.0)))
    ner.model.read_words = lambda lattices: (
        ner.model.emissions(lattices),
        np.zeros((len(lattices), max(x.n_chars for x in lattices), max(x.n_words for x in lattices)), np.float32),
    )
    assert shown(x.entity for x in ner.explain("李明在北京").entities) == [(3, 5, "LOC")]


def test_the_grammar_has_nested_entities():
    made = nested_sentences.sentences(50, seed=0)
    assert any(a.start <= b.start and b.end <= a.end for s in made for a in s.spans for b in s.spans if a != b)


# Relations: nested and discontinuous entities.

RELATIONS = PairGridConfig(scores="relations", max_length=8, pair_width=6, biaffine_width=5)
HOSPITALS = "北大第一和口腔医院"  # 北大第一医院 and 北大口腔医院
PARTS = [((0, 4), (7, 9)), ((0, 2), (5, 9))]


def with_relations(made: GridModel, sentence: Sentence) -> GridModel:
    """The model with fixed relations for every text: those of the entities of a sentence."""
    cells = GoldRelations(made.tags, made.tagger.band).ids(sentence)

    class Fixed(GridModel):
        def emissions(self, lattices):
            n_chars = max(1, max(lattice.n_chars for lattice in lattices))
            scores = np.zeros((len(lattices), n_chars, 2 * made.tagger.band - 1, len(self.tags) + 2), np.float32)
            scores[..., 0] = 1.0
            for first, cell, number in cells.tolist():
                scores[:, first, cell, number] = 4.0
            return scores

    return Fixed(**vars(made))


def test_relations_of_gold_spans():
    gold = GoldRelations(["LOC", "ORG"], 9)
    found = gold.ids(Sentence(HOSPITALS, tuple(Span(0, 9, "ORG", parts) for parts in PARTS)))
    pairs = [(i, i + n - 8, number) for i, n, number in found.tolist()]
    assert pairs == [
        (0, 1, 1), (1, 2, 1), (1, 5, 1), (2, 3, 1), (3, 7, 1), (5, 6, 1), (6, 7, 1), (7, 8, 1), (8, 0, 3),
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"different labels.*scores: spans"):
        gold.ids(Sentence("北京", (Span(0, 2, "LOC"), Span(0, 2, "ORG"))))
    with pytest.raises(DataError, match=r"discontinuous.*relations"):
        GoldSpans(["ORG"], 9).ids(Sentence(HOSPITALS, (Span(0, 9, "ORG", PARTS[0]),)))


def test_padding_does_not_change_relations():
    made = model(head=RELATIONS)
    texts = ["李明在北京。", "罗氏公司设在南京市的人和药店里"]
    made.lexicon.add("罗氏公司")
    apart = [made.emissions(made.lattices([text]))[0] for text in texts]
    together = made.emissions(made.lattices(texts))
    for row, text in enumerate(texts):
        for i in range(len(text)):
            for j in range(max(0, i - 7), min(len(text), i + 8)):
                np.testing.assert_allclose(together[row, i, j - i + 7], apart[row][i, j - i + 7], atol=1e-5)


def test_loss_of_relations_falls_with_gold_scores():
    made = model(head=RELATIONS)
    sentence = Sentence("李明在北京", (Span(0, 2, "PER"), Span(3, 5, "LOC")))
    encoded = [made.vocabulary.encode(x) for x in made.lattices([sentence.text])]
    batch = collate(encoded, cells=[GoldRelations(made.tags, 8).ids(sentence)])
    optimizer = torch.optim.Adam(made.tagger.parameters(), lr=0.02)
    first = made.tagger.loss(batch).item()
    for _ in range(60):
        optimizer.zero_grad()
        made.tagger.loss(batch).backward()
        optimizer.step()
    assert made.tagger.loss(batch).item() < first / 10
    assert made.tagger.best_spans(batch) == [list(sentence.spans)]
    assert shown(NER(made)(sentence.text)) == [(0, 2, "PER"), (3, 5, "LOC")]


def test_discontinuous_entities():
    sentence = Sentence(HOSPITALS, (Span(0, 2, "LOC"), *(Span(0, 9, "ORG", parts) for parts in PARTS)))
    ner = NER(with_relations(model(head=replace(RELATIONS, max_length=9)), sentence))
    found = ner(HOSPITALS)
    assert [(e.text, e.label, e.parts) for e in found] == [
        ("北大", "LOC", ()), ("北大口腔医院", "ORG", PARTS[1]), ("北大第一医院", "ORG", PARTS[0]),
    ]  # fmt: skip
    assert found[1].to_dict()["parts"] == [[0, 2], [5, 9]] and "parts=[[0, 2], [5, 9]]" in repr(found[1])
    assert score([sentence.spans], [found]).f1 == 1
    assert score([sentence.spans[:2]], [found]).precision == pytest.approx(2 / 3)
    assert len(ner(HOSPITALS, nested=False)) == 1
    moved = NER(with_relations(model(head=replace(RELATIONS, max_length=9)), sentence))("\n  " + HOSPITALS)
    assert [(e.text, e.parts) for e in moved][1] == ("北大口腔医院", ((3, 5), (8, 12)))


def test_rules_of_users_and_relations():
    spans = (Span(0, 2, "LOC"), Span(0, 4, "ORG"), Span(5, 7, "LOC"))
    ner = NER(with_relations(model(head=RELATIONS), Sentence("北京大学在北京", spans)))
    text = "北京大学在北京"
    assert shown(ner(text)) == [(0, 2, "LOC"), (0, 4, "ORG"), (5, 7, "LOC")]
    assert shown(ner(text, words=[cige.UserWord("北京", "GPE", "force")])) == [
        (0, 2, "GPE"), (0, 4, "ORG"), (5, 7, "GPE"),
    ]  # fmt: skip
    assert shown(ner(text, words=[cige.UserWord("北京", None, "block")])) == [(0, 4, "ORG")]
    forced = cige.UserWord("北京", "GPE", "force")
    assert shown(ner(text, words=[forced, cige.UserWord("北京大学", None, "block")])) == [(0, 2, "GPE"), (5, 7, "GPE")]
    typed = [cige.UserWord("北京", "GPE", "type"), cige.UserWord("大学", "GPE", "type")]  # 大学 is no entity
    assert shown(ner(text, words=typed)) == [(0, 2, "GPE"), (0, 4, "ORG"), (5, 7, "GPE")]
    assert [e.score for e in ner(text, words=typed)] == [e.score for e in ner(text)]
    assert shown(ner(text, words=[cige.UserWord("北京", "GPE", "type")], labels=["ORG"])) == [(0, 4, "ORG")]


def test_a_saved_model_of_relations_finds_the_same(tmp_path):
    made = model(head=RELATIONS)
    made.save(tmp_path / "model")
    loaded = cige.load(tmp_path / "model", backend="torch")
    assert loaded.model.pair_grid == RELATIONS
    lattices = made.lattices(["李明在北京。"])
    np.testing.assert_allclose(loaded.model.emissions(lattices), made.emissions(lattices), atol=1e-6)
