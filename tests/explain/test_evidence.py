"""Explanations: what an entity was read from, what changes without a word, and how it is shown."""

import io
import json
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest
import tiny
import tiny_grid
from rich.console import Console
from tiny import SENTENCE

from cige.api import NER
from cige.data.gold_spans import GoldRelations
from cige.data.sentence import Sentence, Span
from cige.explain import reading
from cige.explain.explanation import Explanation
from cige.models.flat import FlatConfig
from cige.models.model import GridModel
from cige.models.pair_grid_config import PairGridConfig
from cige.text.windows import CORE

TEXT = "请轩辕澜沧江渊瀚海说话"


@pytest.fixture(scope="module")
def ner() -> NER:
    made = NER(tiny.trained_model())
    made.lexicon.add("轩辕", "澜沧江", "渊瀚海")
    return made


@pytest.fixture(scope="module")
def explanation(ner) -> Explanation:
    return ner.explain(TEXT)


def printed(explanation: Explanation) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(explanation.to_terminal())
    return console.file.getvalue()


def test_the_entities_are_those_of_a_plain_call(ner, explanation):
    assert [x.entity for x in explanation.entities] == ner(TEXT)
    assert len(explanation.entities) == 3


def test_attention_is_a_share_of_that_to_words(ner):
    for evidence in ner.explain("李明是罗氏公司的经理，他来自南京市。", n_words=100).entities:
        assert 0 < evidence.on_words < 1
        shares = [w.share for w in evidence.words]
        assert sum(shares) == pytest.approx(1, abs=1e-4)
        assert shares == sorted(shares, reverse=True)


def test_n_words_limits_the_list(ner):
    assert {len(x.words) for x in ner.explain("李明在南京市长江大桥。", n_words=2).entities} == {2}


def test_the_lattice_is_the_whole_texts(ner, explanation):
    lattice = explanation.lattice
    assert lattice.text == TEXT
    assert [lattice.text[s:e] for s, e, _ in lattice.words.tolist()] == ["轩辕", "澜沧江", "渊瀚海"]
    assert lattice.is_user.all()


def test_without_a_users_word_its_entity_vanishes_and_others_appear(ner, explanation):
    """The names are new and touch one another: only the words tell where one ends."""
    assert explanation.n_tried == 3
    assert explanation.removals
    changed = {c.before.text for r in explanation.removals for c in r.changes if c.kind == "vanishes"}
    assert changed & {"轩辕", "澜沧江", "渊瀚海"}
    assert any(c.kind == "appears" for r in explanation.removals for c in r.changes)


def test_what_a_removal_reports_is_what_reading_without_the_word_gives(ner, explanation):
    for removal in explanation.removals:
        without = NER(tiny.trained_model())
        without.lexicon.add(*({"轩辕", "澜沧江", "渊瀚海"} - {removal.word.text}))
        found = {(e.start, e.end, e.label): e.score for e in without(TEXT)}
        for change in removal.changes:
            entity = change.before or change.after
            key = (entity.start, entity.end, entity.label)
            assert (key in found) == (change.after is not None)
            if change.after is not None:
                assert change.after.score == pytest.approx(found[key], abs=1e-3)


def test_scores_that_differ_much_without_a_word_are_reported(ner, monkeypatch):
    before, changes = {e.text: e.score for e in ner(SENTENCE)}, {}
    for word in (word.text for word in ner.analyze(SENTENCE).words):
        without = NER(tiny.trained_model())
        without.lexicon.remove(word)
        after = {e.text: e.score for e in without(SENTENCE)}
        assert after.keys() == before.keys()
        changes[word] = {text: score for text, score in after.items() if score != before[text]}
    # How far scores change depends on the processor that the model was trained on.
    step = max(abs(score - before[text]) for scores in changes.values() for text, score in scores.items()) / 2
    much = {word: {t: s for t, s in scores.items() if abs(s - before[t]) > step} for word, scores in changes.items()}
    monkeypatch.setattr(reading, "SCORE_STEP", step)
    told = {r.word.text: {c.before.text: c.after.score for c in r.changes} for r in ner.explain(SENTENCE).removals}
    assert told == {word: pytest.approx(scores, abs=step / 100) for word, scores in much.items() if scores}
    assert told


def test_removals_can_be_left_out(ner):
    explanation = ner.explain(TEXT, removals=False)
    assert (explanation.removals, explanation.n_tried) == ([], 0)
    assert "without" not in printed(explanation)


def test_the_drawing_and_the_tables_have_the_text_as_it_was_typed(ner):
    explanation = ner.explain("臺灣的ＡＢ公司請了李明", removals=False)
    assert explanation.lattice.text == "台湾的AB公司请了李明"
    svg = ElementTree.fromstring(explanation.to_svg())
    drawn = "".join(cell.text for cell in svg.iter("{http://www.w3.org/2000/svg}text") if cell.get("font-size") == "22")
    assert drawn == explanation.text and "臺灣的" in printed(explanation)


def test_texts_of_several_windows(ner):
    text = ("李明在北京。王小红是罗氏公司的经理。" * 20)[:-1] + "\n请轩辕说话"
    assert len(text) > CORE
    explanation = ner.explain(text, removals=False)
    assert [x.entity for x in explanation.entities] == ner(text)
    assert explanation.lattice.text == text
    words = explanation.lattice.words
    assert len({tuple(w) for w in words.tolist()}) == len(words)  # none twice where windows overlap
    for evidence in explanation.entities:
        for attended in evidence.words:
            assert text[attended.word.start : attended.word.end] == attended.word.text


def test_a_model_that_reads_no_words():
    config = FlatConfig(**{**vars(tiny.CONFIG), "use_words": False})
    explanation = NER(tiny.trained_model(config=config)).explain("李明在北京。")
    assert explanation.entities
    assert all(x.words == [] and x.on_words == 0 for x in explanation.entities)
    explanation.to_html()


@pytest.mark.parametrize("text", ["", "  \n", "今天天气很好", "<b>&\x00\ud800"])
def test_texts_with_nothing_much_in_them(ner, text):
    explanation = ner.explain(text)
    assert explanation.text == text
    explanation.to_html().encode("utf-8")
    printed(explanation)
    ElementTree.fromstring(explanation.to_svg())


def test_as_json(explanation):
    found = json.loads(json.dumps(explanation.to_dict()))
    assert found["text"] == TEXT
    assert [w["text"] for w in found["words"]] == ["轩辕", "澜沧江", "渊瀚海"]
    assert all(w["is_user"] for w in found["words"])
    entity = found["entities"][0]
    assert TEXT[entity["start"] : entity["end"]] == entity["text"]
    assert {"start", "end", "text", "is_user", "share"} == set(entity["words"][0])
    assert found["removals"][0]["changes"][0]["kind"] in ("vanishes", "appears", "score")
    assert (found["n_tried"], found["n_dropped"]) == (3, 0)


def test_in_a_terminal(explanation):
    shown = printed(explanation)
    for expected in ("轩辕*", "PER", "what changes without a word", "→ gone", "3 words over entities were removed"):
        assert expected in shown


def test_as_one_html_file(explanation, tmp_path):
    explanation.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1 and "轩辕" in page and "What changes without a word" in page
    outside = page.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in outside and "<script" not in outside and "<link" not in outside  # nothing to fetch
    assert not OpenElements(page).left


class OpenElements(HTMLParser):
    """Reads a page; `left` holds what was opened and never closed, or closed out of turn."""

    def __init__(self, page: str):
        super().__init__()
        self.left: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.left.append(tag)

    def handle_endtag(self, tag):
        if self.left and self.left[-1] == tag:
            self.left.pop()
        else:
            self.left.append(f"/{tag}")


def test_as_one_svg_file(explanation, tmp_path):
    explanation.save(tmp_path / "lattice.svg")
    root = ElementTree.parse(tmp_path / "lattice.svg").getroot()
    shown = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"轩", "澜沧江", "your own word"} <= shown


def test_what_the_user_wrote_is_never_markup(ner):
    page = ner.explain('李明<script>alert("x")</script>在北京&').to_html()
    assert "<script>" not in page and "alert(&quot;" in page


def test_words_over_the_budget_are_told():
    made = NER(tiny.trained_model())
    made.lexicon.add(*("哈" * n for n in range(2, 40)))
    explanation = made.explain("哈" * 60, removals=False)
    assert explanation.lattice.n_dropped > 0
    assert f"{explanation.lattice.n_dropped:,} more words" in explanation.to_html()
    assert f"{explanation.lattice.n_dropped:,} more words" in printed(explanation)


def test_entities_with_gaps_of_the_same_outline_have_their_own_evidence():
    made = tiny_grid.model(head=PairGridConfig(scores="relations", max_length=9, pair_width=6, biaffine_width=5))
    text, parts = "北大第一和口腔医院", (((0, 2), (5, 9)), ((0, 4), (7, 9)))
    spans = tuple(Span(0, 9, "ORG", own) for own in parts)

    class Fixed(GridModel):
        def read_words(self, lattices):
            """The relations of the spans, and attention of each character to the words that contain it."""
            scores = np.zeros((len(lattices), 9, 17, len(self.tags) + 2), np.float32)
            scores[..., 0] = 1.0
            for first, cell, number in GoldRelations(self.tags, 9).ids(Sentence(text, spans)).tolist():
                scores[:, first, cell, number] = 4.0
            attention = np.zeros((len(lattices), 9, 2), np.float32)
            for row, lattice in enumerate(lattices):
                for k, (start, end, _) in enumerate(lattice.words.tolist()):
                    attention[row, start:end, k] = 1.0
            return scores, attention

        def emissions(self, lattices):
            return self.read_words(lattices)[0]

    ner = NER(Fixed(**vars(made)))
    ner.lexicon.add("第一", "口腔")
    explanation = ner.explain(text)
    found = {x.entity.parts: ([w.word.text for w in x.words], x.on_words) for x in explanation.entities}
    assert found == {parts[0]: (["口腔"], pytest.approx(1 / 3)), parts[1]: (["第一"], pytest.approx(1 / 3))}
    assert explanation.removals == []  # the fixed relations need no word
