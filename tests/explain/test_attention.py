"""Word sets and attention maps of an explanation, against slow definitions; models that have none."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tiny

from cige.api import NER
from cige.cli import main
from cige.errors import ModelError
from cige.explain.attention import WORDS_READ, AttentionMap
from cige.models.bilstm_crf import BiLstmCrfConfig
from cige.models.config import ModelConfig
from cige.models.dcsan import DcsanConfig
from cige.models.soft_lexicon import SoftLexiconConfig
from cige.models.tener import TenerConfig

TEXT = "李明在南京市长江大桥。"
DCSAN = {"width": 16, "n_cross_heads": 4, "n_self_heads": 2, "ff_width": 16}


def made(architecture: str = "dcsan", config: ModelConfig | None = None, words: tuple[str, ...] = ("李明",)) -> NER:
    ner = NER(tiny.model(architecture=architecture, config=config or DcsanConfig(**DCSAN)))
    ner.lexicon.add(*words)
    return ner


@pytest.fixture(scope="module")
def dcsan() -> NER:
    return made()


# ---- word sets


def slow_sets(ner: NER, text: str, place: int, smoothing: float) -> tuple[dict[str, dict[str | None, float]], dict]:
    """DCSAN's Eq. 3-5, for one character: set -> word (None for the character) -> weight, and those of NONE."""
    (lattice,) = ner.model.lattices([text])
    counts = ner.model.vocabulary.encode(lattice).counts
    user_count = ner.model.tagger.encoder.soft_lexicon.user_count
    smoothed: dict[str, dict[str | None, float]] = {name: {} for name in "BMES"}
    for (start, end, _), count, is_user in zip(lattice.words.tolist(), counts.tolist(), lattice.is_user, strict=True):
        if not start <= place < end:
            continue
        name = "B" if place == start else "E" if place == end - 1 else "M"
        smoothed[name][text[start:end]] = (user_count if is_user else count) + smoothing
    smoothed["S"][None] = 1 + smoothing
    none = {name: 1 + smoothing for name in "BME" if not smoothed[name]}
    total = sum(sum(words.values()) for words in smoothed.values()) + sum(none.values())
    return (
        {name: {word: z / total for word, z in words.items()} for name, words in smoothed.items()},
        {name: z / total for name, z in none.items()},
    )


@pytest.mark.parametrize("smoothing", [1.0, 3.0])
def test_sets_are_those_of_a_slow_definition(smoothing):
    ner = made(config=DcsanConfig(**DCSAN, smoothing=smoothing))
    found = ner.explain(TEXT).word_sets
    assert [sets.char for sets in found] == list(TEXT) and [sets.place for sets in found] == list(range(len(TEXT)))
    for sets in found:
        slow, none = slow_sets(ner, TEXT, sets.place, smoothing)
        for name, members in sets.sets.items():
            fast = {member.word and member.word.text: member.weight for member in members}
            assert fast == pytest.approx(slow[name], abs=1e-6)
            assert [m.weight for m in members] == sorted((m.weight for m in members), reverse=True)
        assert sets.none == pytest.approx(none, abs=1e-6)
    by_hand = {name: {m.word and m.word.text for m in members} for name, members in found[5].sets.items()}
    assert by_hand == {"B": {"市长"}, "M": set(), "E": {"南京市"}, "S": {None}}
    assert found[0].sets["B"][0].word.is_user and found[0].sets["B"][0].word.end == 2


def test_sets_of_a_text_of_several_windows_are_each_characters_own(dcsan):
    text = "李明在南京市长江大桥。" * 40 + "\n李明\n\n"
    found = {sets.place: sets for sets in dcsan.explain(text, removals=False).word_sets}
    assert [k for k in range(len(text)) if k not in found and not text[k].isspace()] == []
    for place, sets in found.items():
        assert sets.char == text[place]
        for members in sets.sets.values():
            for member in members:
                if member.word is not None:
                    assert member.word.start <= place < member.word.end
                    assert text[member.word.start : member.word.end] == member.word.text


def test_soft_lexicon_has_sets_too():
    found = made("soft_lexicon", SoftLexiconConfig(lstm_width=16)).explain(TEXT).word_sets
    for sets in found:
        total = sum(m.weight for members in sets.sets.values() for m in members) + sum(sets.none.values())
        assert total == pytest.approx(1, abs=1e-5)


# ---- maps


def maps_of(ner: NER, text: str = TEXT) -> list[AttentionMap]:
    return ner.explain(text, removals=False, maps=True).maps


def test_maps_have_names_sides_and_rows_that_sum_to_one(dcsan):
    cross, *layers, read = maps_of(dcsan)
    assert (cross.name, cross.asking, cross.answering) == ("cross-lattice attention", "word sets", "characters")
    assert [m.name for m in layers] == [f"self-lattice attention, layer {k}" for k in (1, 2)]
    assert (len(cross.heads), len(layers[0].heads)) == (4, 2)
    for drawn in (cross, *layers):
        assert drawn.rows == drawn.columns == list(TEXT)
        np.testing.assert_allclose(drawn.heads.sum(2), 1, atol=1e-5)
        np.testing.assert_allclose(drawn.mean, sum(drawn.heads) / len(drawn.heads), atol=1e-6)
    assert (read.name, read.answering, read.rows) == (WORDS_READ, "words", list(TEXT))
    assert read.columns == [w.text for w in dcsan.analyze(TEXT).words]
    assert (read.heads.sum(2) <= 1).all()
    for k, word in enumerate(dcsan.analyze(TEXT).words):  # as words ask, a character reads the words over it alone
        assert set(np.flatnonzero(read.mean[:, k])) == set(range(word.start, word.end))


def test_maps_say_who_asks():
    cross = maps_of(made(config=DcsanConfig(**DCSAN, cross_query="chars")))[0]
    assert (cross.asking, cross.answering) == ("characters", "word sets")
    names = [m.name for m in maps_of(made(config=DcsanConfig(**DCSAN, cross_attention=False)))]
    assert names == ["self-lattice attention, layer 1", "self-lattice attention, layer 2", WORDS_READ]


def test_maps_do_not_depend_on_what_was_read_before(dcsan):
    dcsan.model.tagger.train()  # dropout must be off
    first, second = maps_of(dcsan), maps_of(dcsan)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.heads, b.heads)


def test_each_window_has_maps_of_its_own(dcsan):
    text = "李明在北京。\n\n王小红是经理"
    found = [m for m in maps_of(dcsan, text) if m.name == "cross-lattice attention"]
    assert [(m.start, "".join(m.rows)) for m in found] == [(0, "李明在北京。"), (8, "王小红是经理")]


def test_models_without_attention_show_the_words_they_read():
    (read,) = maps_of(NER(tiny.model()))
    attention = NER(tiny.model()).model.read_words(NER(tiny.model()).model.lattices([TEXT]))[1]
    np.testing.assert_allclose(read.heads, attention, atol=1e-6)


def test_a_model_without_words_shows_its_layers():
    config = TenerConfig(n_heads=2, head_width=8, ff_width=16, n_layers=2)
    assert [m.name for m in maps_of(made("tener", config))] == ["self-attention, layer 1", "self-attention, layer 2"]


# ---- where there is nothing


def test_nothing_is_made_that_was_not_asked_for(dcsan):
    explanation = dcsan.explain(TEXT, removals=False, word_sets=False)
    assert explanation.word_sets is None and explanation.maps is None
    assert NER(tiny.model()).explain(TEXT, removals=False).word_sets is None
    assert dcsan.explain("", maps=True).maps == [] and dcsan.explain("").word_sets == []


def test_models_that_have_none_say_which_do():
    with pytest.raises(
        ModelError, match=r"this model \(flat\) has no word sets; models that have: soft_lexicon, dcsan"
    ):
        NER(tiny.model()).explain(TEXT, word_sets=True)
    twin = made(config=DcsanConfig(**DCSAN, use_words=False))
    assert twin.explain(TEXT).word_sets is None
    with pytest.raises(ModelError, match=r"\(dcsan without words\) has no word sets"):
        twin.explain(TEXT, word_sets=True)
    with pytest.raises(ModelError, match=r"\(bilstm_crf\) reads no words .* attention maps: tener, nflat, dcsan;"):
        made("bilstm_crf", BiLstmCrfConfig(lstm_width=16)).explain(TEXT, maps=True)


def test_as_json(dcsan):
    found = json.loads(json.dumps(dcsan.explain(TEXT, maps=True).to_dict()))
    sets = found["word_sets"][0]
    assert (sets["start"], sets["char"], sets["M"], set(sets["none"])) == (0, "李", [], {"M", "E"})
    assert {k: sets["B"][0][k] for k in ("start", "end", "text", "is_user", "is_character")} == {
        "start": 0, "end": 2, "text": "李明", "is_user": True, "is_character": False,
    }  # fmt: skip
    assert sets["S"][0]["is_character"] and sets["S"][0]["text"] == "李"
    drawn = found["maps"][0]
    assert {"name", "asking", "answering", "start", "rows", "columns", "heads"} == set(drawn)
    assert np.array(drawn["heads"]).shape == (4, len(TEXT), len(TEXT))
    without = NER(tiny.model()).explain(TEXT).to_dict()
    assert without["word_sets"] is None and without["maps"] is None


def test_on_the_command_line(dcsan, tmp_path, capsys):
    dcsan.save_pretrained(tmp_path / "dcsan")
    made("bilstm_crf", BiLstmCrfConfig(lstm_width=16)).save_pretrained(tmp_path / "bilstm")
    assert main(["explain", TEXT, "--model", str(tmp_path / "dcsan"), "--maps"]) == 0
    shown = capsys.readouterr().out
    assert "word sets" in shown and "cross-lattice attention" in shown and "none" in shown
    assert main(["explain", TEXT, "--model", str(tmp_path / "dcsan"), "--no-word-sets"]) == 0
    assert "word sets" not in capsys.readouterr().out
    for asked, expected in (("--maps", "tener, nflat, dcsan"), ("--word-sets", "soft_lexicon, dcsan")):
        assert main(["explain", TEXT, "--model", str(tmp_path / "bilstm"), asked]) == 2
        refused = capsys.readouterr().err
        assert expected in refused and refused.count("\n") == 1
    assert main(["explain", TEXT, "--model", str(tmp_path / "dcsan"), "--output", str(tmp_path / "x.pdf")]) == 2
    assert "expected .html, .svg or .png" in capsys.readouterr().err
