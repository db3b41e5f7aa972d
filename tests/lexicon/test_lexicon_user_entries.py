"""A user's words with labels and modes, added or for one call."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nanjing import WORDS, matched

from cige.errors import LexiconError
from cige.lexicon import snapshot
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UserChanges, UserWord
from cige.text.normalize import fold_marks


def entries(lexicon):
    return [(word.text, word.label, word.mode) for word in lexicon.user_entries]


def test_words_with_label_and_mode(lexicon):
    lexicon.add("江大桥", "长江", label="PLACE")
    lexicon.add("市", label="SUFFIX", mode="force")
    lexicon.add("市长江", "京", mode="block")
    lexicon.add("ＧＰＳ")
    assert lexicon.user_words == ("江大桥", "长江", "市", "市长江", "京", "GPS")
    assert entries(lexicon)[1:4] == [
        ("长江", "PLACE", "evidence"),
        ("市", "SUFFIX", "force"),
        ("市长江", None, "block"),
    ]
    # Neither single characters nor blocked words are nodes; ids stay those of the user's words.
    assert lexicon.match("市长江大桥GPS").tolist() == [
        [0, 2, 2], [1, 3, 3], [1, 3, 7], [1, 5, 4], [2, 5, 6], [3, 5, 5], [5, 8, 11],
    ]  # fmt: skip
    snapshot = lexicon.snapshot()
    assert snapshot.user_labels == ("PLACE", "PLACE", "SUFFIX", None, None, None) and snapshot.word(9) == "市长江"
    assert "京" in lexicon and "市长江" in lexicon
    lexicon.remove("京", "市")
    assert "京" not in lexicon and lexicon.user_words == ("江大桥", "长江", "市长江", "GPS")


def test_a_word_added_again_stays_in_its_place_and_takes_the_new_label_and_mode(lexicon):
    lexicon.add("江大桥", "南京大桥", label="PLACE")
    before = lexicon.snapshot()
    lexicon.add("江大桥", label="ROAD", mode="force")
    assert entries(lexicon) == [("江大桥", "ROAD", "force"), ("南京大桥", "PLACE", "evidence")]
    lexicon.add("江大桥")
    assert entries(lexicon)[0] == ("江大桥", None, "evidence")
    assert before.user_labels == ("PLACE", "PLACE"), "a snapshot never changes"
    assert Lexicon.from_words(["甲乙"]).snapshot().user_labels == ()


def test_blocking_a_base_word_leaves_its_node_as_it_was(lexicon):
    lexicon.remove("长江")
    lexicon.add("长江", "大桥", mode="block")
    assert lexicon.removed_words == ("长江",) and matched(lexicon) == ["南京", "南京市", "市长", "长江大桥", "大桥"]


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (["江"], {"label": "X"}, r'single character.*needs mode "force" with a label, or mode "block"'),
        (["江大桥"], {"mode": "force"}, "mode force or type without a label"),
        (["江大桥"], {"mode": "block", "label": "X"}, "mode block with a label"),
        (["江大桥"], {"mode": "always"}, "unknown mode .expected evidence, force, block.*mode 'always'"),
        (["江大桥"], {"label": "*"}, "not a label"),
        (["江大桥"], {"label": 3}, "label is int: expected a string"),
    ],
)
def test_labels_and_modes_that_cannot_be(lexicon, words, options, message):
    with pytest.raises(LexiconError, match=message):
        lexicon.add("南京大桥", *words, **options)
    assert lexicon.user_words == ()


def test_add_file_takes_labels_and_modes(lexicon, tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("# mine\n江大桥\tPLACE\n桥\tPLACE\n桥\tPLACE\tforce\n南京大桥\t\tblock\n", encoding="utf-8")
    report = lexicon.add_file(path)
    assert entries(lexicon) == [("江大桥", "PLACE", "evidence"), ("桥", "PLACE", "force"), ("南京大桥", None, "block")]
    assert (report.n_taken, report.n_comments, report.refused) == (3, 1, ((3, "桥", "single character"),))
    built = Lexicon.from_file(path)  # judged alike; what a base word cannot be is the user's
    assert list(built) == ["江大桥"] and entries(built) == entries(lexicon)[1:]
    assert built.report == report


OWN = st.one_of(
    st.builds(UserWord, st.text("南京市长江大桥", min_size=2, max_size=4), st.sampled_from([None, "LOC", "ORG"])),
    st.builds(UserWord, st.text("南京市长江大桥", min_size=1, max_size=3), st.just("LOC"), st.just("force")),
    st.builds(UserWord, st.text("南京市长江大桥", min_size=1, max_size=3), st.none(), st.just("block")),
)


@given(steps=st.lists(st.lists(OWN, max_size=4), max_size=4), text=st.text("南京市长江大桥", max_size=12))
def test_words_of_a_call_are_read_as_if_they_had_been_added(steps, text):
    added = Lexicon.from_words(WORDS)
    added.remove("长江")
    over = added.changed(UserChanges())
    for words in steps:
        added.add_entries(*words)
        over = over.with_words(words)
        assert over.user_entries == added.user_entries and over.removed_words == added.removed_words
        assert over.match(text).tolist() == added.match(text).tolist()
        assert over.snapshot().rules(text) == added.snapshot().rules(text)


def test_words_of_a_call_leave_the_lexicon_as_it_is(lexicon):
    lexicon.add("江大桥", label="LOC")
    over = lexicon.with_words({"江大桥": "ORG", "南京大桥": None})
    assert entries(over) == [("江大桥", "ORG", "evidence"), ("南京大桥", None, "evidence")]
    assert entries(lexicon) == [("江大桥", "LOC", "evidence")]
    over.add("京市")
    assert "京市" not in lexicon and over.fingerprint == lexicon.fingerprint


def test_a_call_gives_label_and_mode_to_what_has_none(lexicon, tmp_path):
    rows = [("江大桥", None, None), ("长江", "LOC", None), ("市长江", None, "block"), ("市", None, "force")]
    given = [("江大桥", "ORG", "type"), ("长江", "LOC", "type"), ("市长江", None, "block"), ("市", "ORG", "force")]
    table = pd.DataFrame(rows, columns=["词", "标签", "模式"])
    lexicon.add(table, label="ORG", mode="type")
    assert entries(lexicon) == given
    lexicon.remove(table)
    file = tmp_path / "words.csv"
    table.to_csv(file, index=False)
    report = lexicon.add_file(file, label="ORG", mode="type")
    assert entries(lexicon) == given and not report.n_refused
    lexicon.remove(table)
    lexicon.add_file(file, mode="block")
    assert entries(lexicon)[0] == ("江大桥", None, "block")  # and 长江 has a label, which a blocked word cannot have
    assert [word for word, _, _ in entries(lexicon)] == ["江大桥", "市长江"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "O"}, "label='O', mode='evidence': not a label"),
        ({"label": 3}, "label is int"),
        ({"mode": "forced"}, "unknown mode"),
        ({"label": "ORG", "mode": "block"}, "mode block with a label"),
    ],
)
def test_a_label_and_a_mode_that_no_word_can_have_are_refused_before_the_file_is_read(lexicon, options, message):
    with pytest.raises(LexiconError, match=message):
        lexicon.add_file("no such file", **options)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("南京", r"expected a list of words, such as \['南京'\]"),
        ([b"x"], "expected strings or UserWords, got bytes"),
        ([UserWord(3)], "expected strings or UserWords, got int"),
        (["南京", float("nan")], "got float as word 2, so fill or drop missing values first"),
        ({"南京": 3}, "the label of '南京' is int"),
        (["好", "南京"], r"cannot add '好' \(single character\)"),
        ({"南京": "A B"}, "not a label"),
    ],
)
def test_words_of_a_call_that_cannot_be(lexicon, words, message):
    with pytest.raises(LexiconError, match=message):
        lexicon.with_words(words)


def test_changes_on_top_of_what_is_there(lexicon):
    lexicon.add("江大桥", "南京大桥")
    changed = lexicon.changed(UserChanges((UserWord("江大桥", "LOC"),), ("南京大桥", "市长", "没有")))
    assert entries(changed) == [("江大桥", "LOC", "evidence")] and changed.removed_words == ("市长",)
    assert lexicon.user_words == ("江大桥", "南京大桥") and lexicon.removed_words == ()


@pytest.mark.parametrize("label", ["O", "?", "PER|ORG"])
def test_words_with_labels_of_older_versions_are_kept(lexicon, tmp_path, label):
    """New words cannot have such labels, but a saved lexicon with them must not lose its words."""
    old = UserChanges((UserWord("江大桥", label, "force"), UserWord("南京大桥", label)))
    lexicon.changed(old).save(tmp_path / "lexicon")
    assert entries(Lexicon.load(tmp_path / "lexicon")) == [("江大桥", label, "force"), ("南京大桥", label, "evidence")]
    with pytest.raises(LexiconError, match="not a label"):
        lexicon.add_entries(*old.added)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("西门子（中国）", "西门子(中国)"),
        ("Levi's", "Levi’s"),
        ("黑神话：悟空", "黑神话:悟空"),
        ("维生素B₁₂", "维生素Ｂ12"),
        ("iPhone 17", "iPhone\u00a017"),
    ],
)
@pytest.mark.parametrize("mode", ["evidence", "force"])
def test_it_does_not_matter_which_marks_were_typed(lexicon, word, other, mode):
    for own, found in ((word, other), (other, word)):
        lexicon.add(own, label="X", mode=mode)
        text = f"在{found}，在{own}"
        places = [[1, 1 + len(word)], [3 + len(word), 3 + 2 * len(word)]]
        assert [row[:2] for row in lexicon.match(text).tolist()] == places
        assert [[span.start, span.end] for span in lexicon.snapshot().rules(text).forced] == places * (mode == "force")
        assert own in lexicon and found in lexicon
        lexicon.add(found, label="Y")
        assert [entry.label for entry in lexicon.user_entries] == ["Y"], "one word, which is added again"
        lexicon.remove(found)
        assert lexicon.user_words == () and own not in lexicon


def test_a_base_word_with_marks_is_found_as_it_is_written_and_comes_back_with_the_users_word():
    lexicon = Lexicon.from_words(["西门子（中国）"])
    assert matched(lexicon, "西门子（中国）") == ["西门子（中国）"] and matched(lexicon, "西门子(中国)") == []
    lexicon.remove("西门子（中国）")
    assert matched(lexicon, "西门子（中国）") == []
    lexicon.add("西门子（中国）")
    assert lexicon.match("西门子（中国）").tolist() == [[0, 7, 0], [0, 7, 1]]
    lexicon.add("西门子(中国)", mode="block")
    assert lexicon.match("西门子（中国）").tolist() == []


def test_a_removed_base_word_is_removed_again_with_the_users_word_of_other_marks():
    for undo in (
        lambda lexicon: lexicon.remove("西门子(中国)"),
        lambda lexicon: lexicon.remove(*lexicon.user_words),
        lambda lexicon: lexicon.changed(UserChanges(removed=("西门子(中国)",))),
    ):
        lexicon = Lexicon.from_words(["西门子（中国）"])
        lexicon.remove("西门子（中国）")
        lexicon.add("西门子(中国)")
        assert lexicon.match("西门子（中国）").tolist() == [[0, 7, 0], [0, 7, 1]]
        after = undo(lexicon) or lexicon
        assert matched(after, "西门子（中国）") == [] and after.removed_words == ("西门子（中国）",)


def test_adding_a_word_does_not_look_at_every_removed_one(monkeypatch):
    lexicon = Lexicon.from_words(["西门子（中国）", *(f"甲{chr(0x4E00 + k)}" for k in range(500))])
    lexicon.remove(*lexicon)
    folded = []
    monkeypatch.setattr(snapshot, "fold_marks", lambda text: folded.append(text) or fold_marks(text))
    lexicon.add("西门子(中国)", "丙丁")
    lexicon.add("甲乙")
    assert len(folded) == 3 and matched(lexicon, "西门子（中国）") == 2 * ["西门子（中国）"]


def test_the_words_of_a_dict_have_the_mode_of_the_call(lexicon):
    lexicon.add({"江大桥": "ROAD", "市": "SUFFIX"}, mode="force")
    lexicon.add({"市长江": None}, mode="block", inside=True)
    assert entries(lexicon) == [
        ("江大桥", "ROAD", "force"), ("市", "SUFFIX", "force"), ("市长江", None, "block_exact"),
    ]  # fmt: skip
    with pytest.raises(LexiconError, match="without a label"):
        lexicon.add({"南京大桥": None}, mode="force")
    with pytest.raises(LexiconError, match="a dict has its own labels"):
        lexicon.add({"南京大桥": "ROAD"}, label="PLACE", mode="force")
    assert "南京大桥" not in lexicon
