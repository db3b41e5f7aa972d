"""`cige learn-type`: new types from word lists and raw text, on a tiny model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tiny

import cige
from cige.cli import main
from cige.data import read_sentences
from cige.data.user_words import UserWordRegime
from cige.distant.learn_type import _filled_in, _RawText, learn_types
from cige.entities.calibration import Calibration
from cige.entities.label_facts import LabelFacts
from cige.errors import DataError, LexiconError, ModelError, RecipeError
from cige.folders.in_use import in_use
from cige.recipes.shipped import LEARN_TYPE
from cige.training.recipe import Recipe, load_recipe

GAMES = ["轩辕剑", "星海争霸", "风云岛", "魔方城", "飞行棋", "跳跳虎"]
TEXTS = [
    f"{who}{what}{game}{end}" for who in ("我", "他昨天", "李明") for what in ("玩了", "在玩", "买来")
         for game in GAMES for end in ("。", "这个游戏")]  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows persons, places and organisations, and says so in its folder."""
    folder = tmp_path_factory.mktemp("base") / "model"
    model = tiny.model(typed=True)
    calibration = {"fine": Calibration(((0.1, 0.1), (0.9, 0.9)))}
    model.label_facts = LabelFacts(
        parents={"LOC": "WHERE"},
        silent=frozenset(["ORG"]),
        max_lengths={"PER": 5},
        coarse_labels=frozenset(["PER"]),
        calibration=calibration,
        domains={"posts": calibration},
    )
    model.save(folder)
    return folder


def recipe(base: Path, *more: str) -> Recipe:
    quick = ["training.n_epochs=6", "optimizer.learning_rate=0.01", "batches.batch_size=8"]
    return load_recipe(LEARN_TYPE, [f"start_from={base}", *quick, *more])


def test_a_type_is_learnt_beside_those_of_the_model(base: Path, tmp_path: Path) -> None:
    result = learn_types({"GAME": GAMES[:5]}, TEXTS, recipe(base), tmp_path / "run", show_progress=False)
    (game,) = result.types
    assert (game.n_words, game.n_in_text, game.n_uses) == (5, 5, 90) and game.trust > 0.9 and game.n_labelled > 50
    ner = cige.load(result.model)
    assert ner.labels == sorted([*tiny.LABELS, "GAME"])
    facts = ner.label_facts
    assert facts.parents == {"LOC": "WHERE"} and facts.silent == {"ORG"}
    assert facts.max_lengths["PER"] == 5 and facts.max_lengths["GAME"] >= 8
    assert not facts.calibration and not facts.domains, "they were those of other weights"
    assert facts.coarse_labels == {"PER", "GAME"}
    uses = [(text, game) for text in sorted(set(TEXTS)) for game in GAMES[:5] if game in text]
    found = [{e.text for e in entities if e.label == "GAME"} for entities in ner([text for text, _ in uses])]
    n_right = sum(game in names for (_, game), names in zip(uses, found, strict=True))
    assert n_right > len(uses) / 2, "the start knows nothing, and six epochs are few"
    first, second = (next((tmp_path / f"run/text{k}").glob("text-*.jsonl")) for k in (1, 2))
    assert len(read_sentences(first)) == len(set(TEXTS)) and read_sentences(first) != read_sentences(second)
    again = learn_types({"GAME": GAMES[:5]}, TEXTS, recipe(base), tmp_path / "run", show_progress=False)
    assert again.seconds == result.seconds, "a finished run is not repeated"
    of_first_run = {path: path.read_bytes() for path in (tmp_path / "run/text1").iterdir()}
    for name, words in (("GAME", GAMES[:4]), ("TOY", GAMES[:5])):
        with pytest.raises(RecipeError, match="other settings"):
            learn_types({name: words}, TEXTS, recipe(base), tmp_path / "run", show_progress=False)
    assert of_first_run.items() <= {path: path.read_bytes() for path in (tmp_path / "run/text1").iterdir()}.items()


def test_a_word_of_two_lists_and_one_round(base: Path, tmp_path: Path) -> None:
    lists = {"GAME": GAMES[:4], "TOY": GAMES[2:]}
    result = learn_types(lists, TEXTS, recipe(base, "training.n_epochs=1"), tmp_path, n_rounds=1, show_progress=False)
    assert {learnt.name for learnt in result.types} == {"GAME", "TOY"} and not (tmp_path / "round2").exists()
    (written,) = (tmp_path / "text1").glob("text-*.jsonl")
    labels = {span.label for sentence in read_sentences(written) for span in sentence.spans}
    assert {"GAME", "TOY", "GAME|TOY"} <= labels


def test_mistakes_are_named(base: Path, tmp_path: Path) -> None:
    def learn(lists: dict[str, list[str]], texts: list[str], settings: Recipe | None = None) -> None:
        learn_types(lists, texts, settings or recipe(base), tmp_path, show_progress=False)

    with pytest.raises(ModelError, match="the model finds LOC already"):
        learn({"LOC": GAMES}, TEXTS)
    with pytest.raises(LexiconError, match="GAME: no word to learn from"):
        learn({"GAME": ["", "棋"]}, TEXTS)
    with pytest.raises(DataError, match=r"GAME: the text uses no word of the list \(1 word, such as 围棋\)"):
        learn({"GAME": ["围棋"]}, TEXTS)
    with pytest.raises(DataError, match="0 different lines"):
        learn({"GAME": GAMES}, ["", " "])
    with pytest.raises(DataError, match=r"'A\|B': expected a name"):
        learn({"A|B": GAMES}, TEXTS)
    with pytest.raises(DataError, match="'O': expected a name"):
        learn({"O": GAMES}, TEXTS)
    with pytest.raises(DataError, match="no type to learn"):
        learn({}, TEXTS)
    with pytest.raises(ModelError, match="no start_from"):
        learn({"GAME": GAMES}, TEXTS, replace(recipe(base), start_from=None))
    with pytest.raises(ValueError, match="n_rounds=0"):
        learn_types({"GAME": GAMES}, TEXTS, recipe(base), tmp_path, n_rounds=0)
    assert not any(tmp_path.iterdir())


def test_files_of_something_else_are_not_replaced(base: Path, tmp_path: Path) -> None:
    notes, trained = tmp_path / "notes", tmp_path / "trained"
    (notes / "model").mkdir(parents=True)
    (trained / "model").mkdir(parents=True)
    (trained / "recipe.yaml").write_text("name: trained", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"with files that no run wrote \(model\)"):
        learn_types({"GAME": GAMES}, TEXTS, recipe(base), notes)
    with pytest.raises(RecipeError, match="trained holds a training run, whose model would be replaced"):
        learn_types({"GAME": GAMES}, TEXTS, recipe(base), trained)
    assert [path.name for path in sorted(trained.iterdir())] == ["model", "recipe.yaml"]


def test_a_second_run_does_not_touch_the_folder_of_the_first(base: Path, tmp_path: Path) -> None:
    with in_use(tmp_path / "run", by="another run", error=RecipeError):
        with pytest.raises(RecipeError, match=r"run: another run is writing there; wait for it, or stop it"):
            learn_types({"GAME": GAMES}, TEXTS, recipe(base), tmp_path / "run", show_progress=False)
        assert not list((tmp_path / "run").iterdir())


def test_two_different_lines_are_enough_to_learn_from(base: Path) -> None:
    ner = cige.NER.from_pretrained(base)
    read = _RawText.read(["我玩了轩辕剑。", "我买了轩辕剑。", "我买了轩辕剑。"], ner, {"GAME": GAMES})
    assert read.texts == ["我玩了轩辕剑。", "我买了轩辕剑。"] and read.counts["GAME"] == {"轩辕剑": 2}
    with pytest.raises(DataError, match="the text has 1 different lines or sentences"):
        _RawText.read(["我买了轩辕剑。"] * 3, ner, {"GAME": GAMES})
    with pytest.raises(DataError, match=r"GAME: the text uses no word of the list \(1 word, such as 魔方城\)"):
        _RawText.read(["我玩了轩辕剑。", "我买了轩辕剑。"], ner, {"GAME": ["魔方城"]})
    ner.lexicon.add("轩辕剑")
    with pytest.raises(DataError, match="辕剑 occurs in it, but the segmentation prefers other words"):
        _RawText.read(["我玩了轩辕剑。", "我买了轩辕剑。"], ner, {"GAME": ["辕剑"]})


def test_labelled_words_are_simulated_unless_the_recipe_says_otherwise(base: Path) -> None:
    ner = cige.NER.from_pretrained(base)
    plain = recipe(base)
    plain = replace(plain, user_words=UserWordRegime())
    filled = _filled_in(plain, ner, {"GAME": GAMES})
    assert plain.model.reads_word_labels and filled.user_words.label_prob == 0.5
    assert filled.data.labels == tuple(sorted([*ner.labels, "GAME"])) and filled.name == "learn-GAME"
    own = UserWordRegime(label_prob=0.25)
    assert _filled_in(replace(plain, user_words=own), ner, {"GAME": GAMES}).user_words == own


def test_the_command(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "games.txt").write_text("\n".join(GAMES), encoding="utf-8")
    (tmp_path / "text.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    text = ["--text", str(tmp_path / "text.txt")]
    end = ["--model", str(base), "--output", str(tmp_path / "run")]
    one_epoch = ["--rounds", "1", "--set", "training.n_epochs=1"]
    assert main(["learn-type", "GAME", "--words", str(tmp_path / "games.txt"), *text, *end, *one_epoch]) == 0
    out = capsys.readouterr().out
    assert "GAME: 6 of 6 words are in the text, 108 times" in out and str(tmp_path / "run/model") in out
    assert "GAME" in cige.load(tmp_path / "run/model").labels

    def refused(*args: str) -> str:
        assert main(["learn-type", *args, *end]) == 2
        return capsys.readouterr().err

    assert "GAME has no words" in refused("GAME", *text)
    assert "given twice" in refused("GAME=a.txt", "GAME=b.txt", *text)
    assert "--words is for a single type" in refused("GAME", "TOY", "--words", "a.txt", *text)
    assert "empty.txt: the file is empty" in refused(
        "X", "--words", str(tmp_path / "games.txt"), "--text", str(tmp_path / "empty.txt")
    )
    assert "no word to learn from" in refused("X", "--words", str(tmp_path / "empty.txt"), *text)
    assert "新闻: no such file" in refused("X", "--words", str(tmp_path / "games.txt"), "--text", "新闻")


def test_what_is_not_used_of_a_word_list_is_said(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, text = tmp_path / "games.csv", tmp_path / "text.txt"
    lines = ["word,label,mode", "轩辕剑,,", "星海争霸,TOY,", "风云岛,,block", "棋,,"]
    words.write_text("\n".join(lines), encoding="utf-8")
    text.write_text("\n".join(TEXTS), encoding="utf-8")
    argv = ["learn-type", f"GAME={words}", "--text", str(text), "--model", str(base), "--output", str(tmp_path / "run")]
    assert main([*argv, "--rounds", "1", "--set", "training.n_epochs=1"]) == 0
    out, err = capsys.readouterr()
    assert "GAME: 2 of 2 words are in the text" in out, "a blocked word names nothing"
    assert "games.csv: 1 blocked word left out" in err and "line 5: '棋': single character" in err
    assert "labels in the file are ignored (TOY); every word is learnt as GAME" in err
