"""mode="force" and mode="block" as a user meets them: whole texts, windows, explanations."""

import io
import random
import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
from rich.console import Console
from tiny import triples

from cige.api import NER
from cige.data.tags import allowed_transitions, tag_set
from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UserWord
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.windows import read_windows, windows_of
from cige.text.windows import CONTEXT, CORE

SENTENCE = "李明在北京。王小红是罗氏公司的经理，他来自南京市。"


@pytest.fixture
def ner() -> NER:
    return NER(tiny.trained_model())


def test_a_forced_word_is_tagged_whatever_the_model_thinks(ner):
    before = ner(SENTENCE)
    ner.lexicon.add("氏公", label="ORG", mode="force")
    ner.lexicon.add("经", label="职位", mode="force")  # one character, and a type that the model does not know
    entities = ner(SENTENCE)
    forced = [e for e in entities if e.forced]
    assert triples(forced) == [(11, 13, "ORG"), (15, 16, "职位")]
    assert [e.score for e in forced] == [1.0, 1.0]
    assert not any(e.start < 13 and e.end > 11 for e in entities if not e.forced)  # 罗氏公司 gave way
    assert triples(entities)[:3] == triples(before)[:3]
    assert ner.analyze(SENTENCE).entities == entities


def test_a_forced_label_takes_the_place_of_the_models(ner):
    assert triples(ner("李明在北京。"))[0] == (0, 2, "PER")
    ner.lexicon.add("李明", label="PRODUCT", mode="force")
    assert triples(ner("李明在北京。")) == [(0, 2, "PRODUCT"), (3, 5, "LOC")]


def test_a_blocked_word_is_never_an_entity(ner):
    before = triples(ner(SENTENCE))
    assert (10, 14, "ORG") in before and (0, 2, "PER") in before
    ner.lexicon.add("罗氏公司", "李明", mode="block")
    entities = ner(SENTENCE)
    assert not {"罗氏公司", "李明"} & {e.text for e in entities}
    assert set(triples(entities)) >= {(3, 5, "LOC"), (6, 9, "PER"), (21, 24, "LOC")}
    ner.lexicon.remove("罗氏公司")
    assert (10, 14, "ORG") in triples(ner(SENTENCE))


def test_a_blocked_word_within_a_longer_name_leaves_it_alone(ner):
    ner.lexicon.add("罗氏", "公司", "北", mode="block")
    assert triples(ner(SENTENCE))[:4] == [(0, 2, "PER"), (3, 5, "LOC"), (6, 9, "PER"), (10, 14, "ORG")]


def test_nothing_inside_a_blocked_word_is_an_entity_unless_the_user_says_so(ner):
    text = "李明在南京市北京。"
    assert (3, 6, "LOC") in triples(ner(text))
    ner.lexicon.add("南京市北京", mode="block")
    assert not any(start >= 3 and end <= 8 for start, end, _ in triples(ner(text)))
    ner.lexicon.add("南京市北京", mode="block", inside=True)
    assert (3, 6, "LOC") in triples(ner(text))
    ner.lexicon.add("南京市", mode="block", inside=True)
    assert (3, 6, "LOC") not in triples(ner(text))


def test_a_typed_word_has_the_users_type_where_the_model_finds_it(ner):
    plain = {(e.start, e.end): e for e in ner(SENTENCE)}
    ner.lexicon.add("罗氏公司", label="GAME", mode="type")  # a type that the model does not know
    ner.lexicon.add("李明", label="LOC", mode="type")  # one that it knows
    ner.lexicon.add("经理", label="LOC", mode="type")  # found by nobody
    entities = {(e.start, e.end): e for e in ner(SENTENCE)}
    assert entities[10, 14].label == "GAME" and entities[0, 2].label == "LOC"
    assert entities[10, 14].score >= plain[10, 14].score - 0.2
    assert (15, 17) not in entities
    assert {place: e.label for place, e in entities.items() if place not in {(10, 14), (0, 2)}} == {
        place: e.label for place, e in plain.items() if place not in {(10, 14), (0, 2)}
    }
    assert not any(e.forced for e in entities.values())


@pytest.mark.parametrize("shift", [*range(-12, 13, 4), CONTEXT - 4, CONTEXT])
def test_a_forced_word_over_the_edge_of_a_window_is_found_whole(ner, shift):
    word = "".join(map(chr, range(0x4E00, 0x4E00 + 64)))  # as long as a word may be, and longer than the context
    start = CORE + shift - 10
    text = "好" * start + word + "好" * 400
    ner.lexicon.add(word, label="LOC", mode="force")
    entities = ner(text)
    assert [e for e in entities if e.forced] == [Entity(start, start + 64, "LOC", word, 1.0, forced=True)]
    assert all(e.end <= start or e.start >= start + 64 for e in entities if not e.forced)


@pytest.mark.parametrize("shift", [*range(-60, 13, 8), CONTEXT - 4, CONTEXT])
@pytest.mark.parametrize("comma", [False, True])
def test_a_word_over_the_edge_of_a_window_is_in_its_lattice_as_a_whole(ner, shift, comma):
    word = "".join(map(chr, range(0x4E00, 0x4E00 + 64)))
    word = word[:31] + "，" + word[32:] if comma else word
    start = CORE + shift - 10
    text = "好" * start + word + "好" * 400 + "\n" + word[32:]
    snapshot = ner.lexicon.with_words([word]).snapshot()
    windows = read_windows(text, snapshot)
    assert sum((part.lattice.words[:, 2] >= snapshot.n_base).sum() for part in windows) >= 1
    assert all("\n" not in text[part.window.start : part.window.end].rstrip() for part in windows)
    assert [w.core_start for w in windows_of(text)] == [part.window.core_start for part in windows]


def test_which_words_hold_is_decided_over_the_whole_text(ner):
    """Beyond the edges of all windows: 甲乙 overlaps 乙甲 everywhere, and the first in the text holds."""
    ner.lexicon.add("甲乙", label="PER", mode="force")
    ner.lexicon.add("乙甲", label="LOC", mode="force")
    entities = [e for e in ner("甲乙" * 1000) if e.forced]
    assert triples(entities) == [(k, k + 2, "PER") for k in range(0, 2000, 2)]


def test_a_text_of_50000_characters():
    """By a model that tags each character by itself, so that only the windows and the rules take time."""
    tags = tag_set(["LOC", "PER"])
    start, between, end = (np.where(allowed, 0.0, -np.inf) for allowed in allowed_transitions(tags))
    scores = np.random.default_rng(0).normal(size=(0x10000, len(tags))).astype(np.float32)

    def emissions(lattices):
        longest = max(lattice.n_chars for lattice in lattices)
        return np.stack([scores[[ord(char) for char in lattice.text.ljust(longest)]] for lattice in lattices])

    lexicon = Lexicon.from_words(["北京"])
    crf = NumpyCRF(start=start, transitions=between, end=end)
    names = {"tags": tags, "labels": ["LOC", "PER"], "scheme": "BMES", "label_facts": LabelFacts()}
    functions = {"emissions": emissions, "find_spans": lambda *_: None}
    ner = NER(SimpleNamespace(**names, **functions, crf=crf, lexicon=lexicon, is_compiled=False))
    text = "".join(random.Random(0).choices("甲乙丙丁戊己庚辛，。", k=50_000)).replace("甲乙丙丁", "，")
    blocked = max((e.text for e in ner(text[:5000]) if len(e.text) == 3), key=text.count)
    lexicon.add("甲乙", "丙", label="X", mode="force")
    lexicon.add(blocked, mode="block")
    entities = ner(text)
    assert [e.text for e in entities if e.forced] == re.findall("甲乙|丙", text)
    assert [e.text for e in entities if e.label == "X"] == re.findall("甲乙|丙", text)
    assert text.count(blocked) > 10 and blocked not in {e.text for e in entities}
    assert sum(not e.forced for e in entities) > 1000
    assert all(a.end <= b.start for a, b in pairwise(entities))


def test_line_breaks_and_full_width_forms(ner):
    ner.lexicon.add("ＡＩ", label="X", mode="force")
    assert triples(e for e in ner("\r\n\nＡＩ\r\nAI在BAIDU\n") if e.forced) == [(3, 5, "X"), (7, 9, "X")]


def test_a_stream_reads_rules_as_they_were_when_it_was_asked_for(ner):
    found = ner.pipe(["李明在北京。"] * 3, batch_size=1)
    ner.lexicon.add("李明", mode="block")
    assert all(triples(entities)[0] == (0, 2, "PER") for entities in found)
    assert triples(ner("李明在北京。")) != triples(next(ner.pipe(["张三在北京。"])))


def test_rules_survive_saving(ner, tmp_path):
    ner.lexicon.add("京", label="X", mode="force")
    ner.save_pretrained(tmp_path / "model")
    assert [e.label for e in NER.from_pretrained(tmp_path / "model")("在北京。") if e.forced] == ["X"]


def test_a_forced_entity_says_so():
    forced = Entity(0, 2, "X", "甲乙", 1.0, forced=True)
    assert forced.to_dict() == {"start": 0, "end": 2, "label": "X", "text": "甲乙", "score": 1.0, "forced": True}
    assert repr(forced).endswith("score=1.0, forced=True)")
    assert "forced" not in repr(Entity(0, 2, "X", "甲乙", 0.5))
    assert "forced" not in Entity(0, 2, "X", "甲乙", 0.5).to_dict()


def test_explanations_show_labels_forced_words_and_no_blocked_entities(ner):
    ner.lexicon.add("罗氏", label="BRAND")
    ner.lexicon.add("氏公", label="职位", mode="force")
    ner.lexicon.add("李明", mode="block")
    explanation = ner.explain(SENTENCE)
    assert [x.entity for x in explanation.entities] == ner(SENTENCE)
    words = {word["text"]: word for word in explanation.to_dict()["words"] if word["is_user"]}
    assert words["罗氏"]["label"] == "BRAND" and "mode" not in words["罗氏"]
    assert (words["氏公"]["label"], words["氏公"]["mode"]) == ("职位", "force")
    attended = [w.word for x in explanation.entities for w in x.words if w.word.is_user]
    assert {w.shown() for w in attended} == {"罗氏*BRAND", "氏公*职位!"}
    drawing = explanation.to_svg()
    assert "your own word  BRAND" in drawing and "your own word  职位 forced" in drawing and "13) forced<" in drawing
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(explanation.to_terminal())
    shown = console.export_text()
    assert "罗氏*BRAND" in shown and "氏公*职位!" in shown and "forced" in shown
    assert ", your own word, forced" in explanation.to_html()


def test_a_blocked_word_stays_blocked_beside_what_is_forced_in_it(ner):
    blocked = UserWord("罗氏公司的经理", None, "block")
    assert not [e for e in ner(SENTENCE, words=[blocked]) if 10 <= e.start < 17]
    entities = ner(SENTENCE, words=[blocked, UserWord("经理", "职位", "force")])
    assert triples(e for e in entities if 10 <= e.start < 17) == [(15, 17, "职位")]
