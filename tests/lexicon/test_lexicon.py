"""Lexicon: building, matching, and the words that a user adds and removes."""

import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nanjing import MATCHES, TEXT, WORDS, matched

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.report import WordListWarning
from cige.lexicon.user_store import UserStore
from cige.lexicon.user_word import UserWord
from cige.text.normalize import normalize


def test_all_overlapping_words_sorted(lexicon):
    rows = lexicon.match(TEXT)
    assert rows.dtype == np.int32
    assert rows.tolist() == MATCHES
    assert lexicon.match("没有").shape == (0, 3)
    assert lexicon.match("").shape == (0, 3)


@pytest.mark.parametrize(("given", "problem"), [(None, "NoneType"), (["南京"], "one text per call"), (b"x", "decode")])
def test_only_a_text_is_matched(lexicon, given, problem):
    with pytest.raises(TypeError, match=problem):
        lexicon.match(given)


INVISIBLE_CHARS = "\u200b\u200c\u200d\u2060\ufeff\u00ad"


@given(before=st.lists(st.text(INVISIBLE_CHARS, max_size=2), min_size=len(TEXT), max_size=len(TEXT)))
def test_invisible_characters_within_words_do_not_matter(before):
    lexicon = Lexicon.from_words(WORDS)
    lexicon.add("京市")
    text, places = "", []
    for invisible, char in zip(before, TEXT, strict=True):
        text += invisible
        places.append(len(text))
        text += char
    expected = [[places[start], places[end - 1] + 1, word] for start, end, word in lexicon.match(TEXT).tolist()]
    assert lexicon.match(text).tolist() == expected and len(expected) == len(MATCHES) + 1


def test_an_invisible_character_does_not_divide_a_latin_word():
    assert Lexicon.from_words(["AI", "BAIDU"]).match("BAI\u200bDU").tolist() == [[0, 6, 1]]


def test_words_counts_and_ids(lexicon):
    assert len(lexicon) == 6
    assert list(lexicon) == WORDS
    assert [lexicon.word(i) for i in range(6)] == WORDS
    assert [lexicon.id(word) for word in WORDS] == list(range(6))
    assert lexicon.id("江大") is None
    assert lexicon.count(1) == 9
    assert Lexicon.from_words(WORDS).count(1) is None
    assert "长江" in lexicon and "江大" not in lexicon and 3 not in lexicon
    with pytest.raises(LexiconError, match="word id 6: expected 0 to 5"):
        lexicon.word(6)


def test_from_words_reports_what_it_refuses():
    lexicon = Lexicon.from_words(["南京", "", "市", "南京", "长 江", "\ud800京", "Ａ股"], counts=range(7))
    assert list(lexicon) == ["南京", "A股"]
    assert [lexicon.count(0), lexicon.count(1)] == [0, 6]
    assert lexicon.report.n_taken == 2
    assert [refusal.line for refusal in lexicon.report.refused] == [2, 3, 4, 5, 6]


def test_from_words_refuses_one_string_and_wrong_counts():
    with pytest.raises(LexiconError, match="not a string"):
        Lexicon.from_words("南京")
    with pytest.raises(LexiconError, match="2 counts for 1 word"):
        Lexicon.from_words(["南京"], counts=[1, 2])
    with pytest.raises(LexiconError, match="word 2 is float; expected a string"):
        Lexicon.from_words(["南京", float("nan")])


def test_from_file_keeps_its_report_and_refuses_a_useless_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("南京\t3\n市\t9\n长江\t0\n")
    assert list(Lexicon.from_file(path)) == ["南京", "长江"], "without min_count a count of 0 is no reason to skip"
    lexicon = Lexicon.from_file(path, min_count=2)
    assert (list(lexicon), lexicon.count(0)) == (["南京"], 3)
    assert (lexicon.report.n_refused, lexicon.report.n_skipped) == (1, 1)
    path.write_text("市\n")
    with pytest.raises(LexiconError, match=r"(?s)no usable word.*single character"):
        Lexicon.from_file(path)


def test_fingerprint_tells_words_and_their_order_apart():
    assert Lexicon.from_words(["ab", "cd"]).fingerprint != Lexicon.from_words(["cd", "ab"]).fingerprint
    assert Lexicon.from_words(["abc", "de"]).fingerprint != Lexicon.from_words(["ab", "cde"]).fingerprint
    same = Lexicon.from_words(["ab", "cd"])
    same.add("ef")
    assert same.fingerprint == Lexicon.from_words(["ab", "cd"], counts=[1, 2]).fingerprint


def test_added_words_are_matched_at_once_with_ids_after_the_base(lexicon):
    lexicon.add("江大桥", "iPhone 15 Pro")
    assert lexicon.user_words == ("江大桥", "iPhone 15 Pro")
    assert [4, 7, 6] in lexicon.match(TEXT).tolist()
    assert lexicon.match("买iPhone 15 Pro!").tolist() == [[1, 14, 7]]
    assert lexicon.word(6) == "江大桥" and lexicon.count(6) is None
    assert "江大桥" in lexicon and len(lexicon) == 6
    lexicon.add("江大桥")
    assert lexicon.user_words == ("江大桥", "iPhone 15 Pro")


def test_a_users_word_that_is_a_base_word_gives_both_nodes(lexicon):
    lexicon.add("长江")
    assert lexicon.match("长江").tolist() == [[0, 2, 3], [0, 2, 6]]
    snapshot = lexicon.snapshot()
    assert [snapshot.is_user(3), snapshot.is_user(6)] == [False, True]


def test_added_words_are_normalised(lexicon):
    lexicon.add("ＧＰＳ　导航")
    assert lexicon.user_words == ("GPS 导航",)
    assert lexicon.match("用ＧＰＳ　导航").tolist() == [[1, 7, 6]]


@pytest.mark.parametrize("bad", ["", "江", " ", "\u3000\u3000", " 江大", "江大\n", "江\x00大", "大" * 65, "\udc00江"])
def test_words_that_cannot_be_used_are_named_and_nothing_is_added(lexicon, bad):
    with pytest.raises(LexiconError, match="cannot add"):
        lexicon.add("江大桥", bad)
    assert lexicon.user_words == ()


@pytest.mark.parametrize(
    "words",
    [
        ["江大桥", UserWord("小米SU7", "PRODUCT")],
        {"江大桥": None, "小米SU7": "PRODUCT"},
        pd.DataFrame({"word": ["江大桥", "小米SU7"], "label": [None, "PRODUCT"], "note": [1, 2]}),
        pd.DataFrame({"Word": ["江大桥", "小米SU7"], "Label": [None, "PRODUCT"], "Mode": ["", None]}),
        pd.DataFrame({7: [1, 2], "词": ["江大桥", "小米SU7"], "类型": [None, "PRODUCT"]}),
        pd.DataFrame({"text": ["江大桥", "小米SU7"], "label": [float("nan"), "PRODUCT"], "mode": ["", "evidence"]}),
    ],
    ids=["list", "dict", "table", "table with columns in another case", "table in Chinese", "table with modes"],
)
def test_lists_dicts_and_tables_are_added(lexicon, words):
    lexicon.add(words)
    assert lexicon.user_entries == (UserWord("江大桥"), UserWord("小米SU7", "PRODUCT"))
    assert lexicon.with_words(words).user_entries == lexicon.user_entries


@pytest.mark.parametrize(
    "words",
    [
        [UserWord("江大桥", "X"), UserWord("小米SU7"), UserWord("江大桥", "Y"), UserWord("江大桥", "X", "force")],
        pd.DataFrame({"word": ["江大桥", "小米SU7", "江大桥"], "label": ["X", None, "Y"]}),
    ],
    ids=["list", "table"],
)
def test_words_of_a_call_that_contradict_each_other_are_told_and_the_first_holds(lexicon, words):
    told = "'江大桥': listed before with another label or mode; the first label and mode are used"
    with pytest.warns(WordListWarning, match=told) as warned:
        lexicon.add(words)
    assert warned[0].filename == __file__
    assert lexicon.user_entries == (UserWord("江大桥", "X"), UserWord("小米SU7"))
    with pytest.warns(WordListWarning, match=told):
        assert lexicon.with_words(words).user_entries == lexicon.user_entries
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lexicon.add([UserWord("江大桥", "Y"), UserWord("江大桥", "Y"), "小米SU7"])  # a later call replaces the earlier
    assert lexicon.user_entries == (UserWord("江大桥", "Y"), UserWord("小米SU7"))


@pytest.mark.parametrize("make", [list, tuple, set, iter])
def test_a_list_has_the_label_and_the_mode_of_the_call(lexicon, make):
    words = ["江大桥", "小米SU7"]
    lexicon.add(make(words), label="CAR", mode="type")
    assert set(lexicon.user_entries) == {UserWord(word, "CAR", "type") for word in words}
    lexicon.add(make(words), mode="block", inside=True)
    assert set(lexicon.user_entries) == {UserWord(word, None, "block_exact") for word in words}
    with pytest.raises(LexiconError, match="without a label"):
        lexicon.add(make(words), mode="type")


def test_what_cannot_be_added_is_explained(lexicon):
    with pytest.raises(TypeError, match=r"label='PER'"):
        lexicon.add("张三", "PER")
    for words in ({"张三": "PER"}, ["张三", UserWord("李四")], b"x", 7):
        for options in ({"label": "LOC"}, {"mode": "block"}, {"mode": "block", "inside": True}):
            message = r"label=, mode= and inside= are for strings, one by one or in a list"
            if isinstance(words, dict) and "mode" in options:  # which has labels of its own, but no modes
                message = "mode block.* with a label"
            with pytest.raises(LexiconError, match=message):
                lexicon.add(words, **options)
    for words, hint in (([{"text": "张三"}], "give a dict"), ([("张三", "PER")], "give a dict"), ([b"x"], "decode it")):
        with pytest.raises(LexiconError, match=hint):
            lexicon.add(words)
    with pytest.raises(LexiconError, match="got bytes; decode them first"):
        lexicon.with_words(b"x")
    with pytest.raises(LexiconError, match="a table with note, label; expected a column word"):
        lexicon.add(pd.DataFrame({"note": ["张三"], "label": ["PER"]}))
    with pytest.raises(LexiconError, match="row 2 has 7"):
        lexicon.add(pd.DataFrame({"word": ["张三", 7]}))
    with pytest.raises(LexiconError, match="got int"):
        lexicon.add(7)
    with pytest.raises(LexiconError, match="got list"):
        lexicon.add("张三", ["李四"])
    with pytest.raises(LexiconError, match="without a label"):
        lexicon.add("张三", mode="type")
    with pytest.raises(LexiconError, match="inside=True was given with mode 'force'"):
        lexicon.add("张三", label="PER", mode="force", inside=True)
    assert lexicon.user_words == ()


def test_add_file_takes_the_good_lines(lexicon, tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("江大桥\n桥\nRedmi Note 12\n", encoding="utf-8")
    report = lexicon.add_file(path)
    assert lexicon.user_words == ("江大桥", "Redmi Note 12")
    assert (report.n_taken, report.refused) == (2, ((2, "桥", "single character"),))
    with pytest.raises(LexiconError, match="cannot be read"):
        lexicon.add_file(tmp_path / "nowhere.txt")


def test_remove_and_add_again(lexicon):
    lexicon.add("江大桥", "南京大桥")
    lexicon.remove("江大桥", "长江")
    assert lexicon.user_words == ("南京大桥",) and lexicon.removed_words == ("长江",)
    assert "长江" not in lexicon and "长江" not in matched(lexicon) and "江大桥" not in matched(lexicon)
    assert lexicon.match("南京大桥").tolist() == [[0, 2, 0], [0, 4, 6], [2, 4, 5]]
    assert lexicon.id("长江") == 3 and lexicon.word(3) == "长江", "ids of base words never move"
    lexicon.add("长江")
    assert lexicon.removed_words == ()
    assert lexicon.match("长江").tolist() == [[0, 2, 3], [0, 2, 7]]


def test_removing_a_word_that_was_added_undoes_that_and_no_more(lexicon):
    lexicon.add("长江", label="LOC")
    lexicon.add("长江", mode="block")
    lexicon.remove("长江", "市长")
    assert lexicon.match("长江市长").tolist() == [[0, 2, 3]]
    assert lexicon.user_words == () and lexicon.removed_words == ("市长",)
    lexicon.remove("长江")  # which was not added
    assert "长江" not in lexicon and lexicon.match("长江").shape == (0, 3)
    assert lexicon.removed_words == ("市长", "长江")


@pytest.mark.parametrize("saved", [False, True])
def test_a_word_that_was_removed_and_then_added_is_gone_again_without_the_addition(lexicon, tmp_path, saved):
    lexicon.remove("长江")
    lexicon.add("长江", label="LOC")
    if saved:
        lexicon.save(tmp_path / "lex")
        lexicon = Lexicon.load(tmp_path / "lex")
    assert lexicon.match("长江").tolist() == [[0, 2, 3], [0, 2, 6]] and lexicon.removed_words == ()
    lexicon.remove("长江")
    assert lexicon.match("长江").shape == (0, 3) and lexicon.removed_words == ("长江",)


@pytest.mark.parametrize(
    "words",
    [
        ["江大桥", "长江"],
        ("江大桥", "长江"),
        {"江大桥": "LOC", "长江": None},
        [UserWord("江大桥"), "长江"],
        iter(["江大桥", "长江"]),
    ],
    ids=["list", "tuple", "dict", "UserWord", "iterator"],
)
def test_what_was_added_as_a_list_is_removed_as_a_list(lexicon, words):
    lexicon.add("江大桥", "南京大桥")
    lexicon.remove(words)
    assert lexicon.user_words == ("南京大桥",) and lexicon.removed_words == ("长江",)
    with pytest.raises(LexiconError, match="remove 江大: not in the lexicon"):
        lexicon.remove(["南京大桥", "江大", "江大"])
    with pytest.raises(LexiconError, match="expected strings or UserWords, got int"):
        lexicon.remove([3])
    assert lexicon.user_words == ("南京大桥",)


def test_many_words_are_not_looked_up_one_by_one_to_remove_them(monkeypatch):
    lexicon = Lexicon.from_words(["南京"])
    lexicon.add(words := [f"甲{number}" for number in range(50)])
    one_by_one = []
    monkeypatch.setattr(UserStore, "_place", lambda _, word: one_by_one.append(word))
    lexicon.remove([*words[:40], *words[:3], "南京"])
    assert list(lexicon.user_words) == words[40:] and lexicon.removed_words == ("南京",)
    assert {*one_by_one} <= {"南京"}


def test_removing_an_unknown_word_is_an_error_and_removes_nothing(lexicon):
    with pytest.raises(LexiconError, match="江大: not in the lexicon"):
        lexicon.remove("长江", "江大")
    assert "长江" in lexicon


def test_a_lexicon_without_the_users_changes_is_walked_once_and_its_rows_are_not_copied(lexicon, monkeypatch):
    walked = []
    snapshot = lexicon.snapshot()
    usual = snapshot._base.matcher.find_whole
    monkeypatch.setattr(snapshot._base.matcher, "find_whole", lambda text: walked.append(usual(text)) or walked[-1])
    assert snapshot.match(TEXT) is walked[0] and len(walked) == 1
    assert not len(snapshot._user)
    lexicon.add("江大桥")
    with_word = lexicon.snapshot()
    assert with_word.match("没有南京") is walked[-1]  # no word of the user's there: nothing to sort
    assert len(with_word.match(TEXT)) == len(MATCHES) + 1
    lexicon.remove("江大桥", "市长")
    without_word = lexicon.snapshot()
    assert not without_word._user.layers and without_word.match(TEXT).tolist() == [m for m in MATCHES if m[2] != 2]


def test_a_snapshot_never_changes(lexicon):
    before = lexicon.snapshot()
    lexicon.add("江大桥")
    between = lexicon.snapshot()
    lexicon.remove("江大桥", "长江")
    assert before.match(TEXT).tolist() == MATCHES
    assert before.user_words == () and "江大桥" not in before
    assert [4, 7, 6] in between.match(TEXT).tolist() and between.word(6) == "江大桥"
    assert "长江" in before and "长江" in between and "长江" not in lexicon


def test_threads_never_see_half_an_update(lexicon):
    pairs = [(f"甲{i}号", f"乙{i}号") for i in range(60)]
    text = "，".join(first + second for first, second in pairs)
    stop = threading.Event()
    problems = []

    def read():
        while not stop.is_set():
            try:
                snapshot = lexicon.snapshot()
                found = [snapshot.word(i) for _, _, i in snapshot.match(text).tolist()]
                if found != [snapshot.word(i) for _, _, i in snapshot.match(text).tolist()]:
                    problems.append("a snapshot changed")
                halves = [pair for pair in pairs if (pair[0] in found) != (pair[1] in found)]
                if halves:
                    problems.append(f"half an update: {halves[0]}")
            except Exception as error:
                problems.append(repr(error))

    readers = [threading.Thread(target=read) for _ in range(3)]
    writers = [
        threading.Thread(target=lambda part=part: [lexicon.add(*pair) for pair in part])
        for part in (pairs[::2], pairs[1::2])
    ]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    for first, second in pairs[:20]:
        lexicon.remove(first, second)
    stop.set()
    for thread in readers:
        thread.join()
    assert problems == []
    assert set(lexicon.user_words) == {word for pair in pairs[20:] for word in pair}, "no update was lost"


def test_a_lexicon_can_be_sent_to_another_process(lexicon):
    lexicon.add("江大桥")
    copy = pickle.loads(pickle.dumps(lexicon))
    assert copy.match(TEXT).tolist() == lexicon.match(TEXT).tolist()
    copy.add("南京大桥")
    assert lexicon.user_words == ("江大桥",)


def test_many_user_and_hidden_words_in_one_text_stay_sorted(lexicon):
    lexicon.add("市长", "江大桥", "京市", "南京市长江大桥")
    lexicon.remove("长江", "大桥")
    ids = {"南京": 0, "南京市": 1, "市长": 2, "长江大桥": 4, "京市": 8, "江大桥": 7, "南京市长江大桥": 9}
    expected = [[i, j, ids[TEXT[i:j]]] for i in range(7) for j in range(i + 2, 8) if TEXT[i:j] in ids]
    expected.insert(expected.index([2, 4, 2]) + 1, [2, 4, 6])
    rows = lexicon.match(TEXT)
    assert rows.tolist() == expected and rows.dtype == np.int32
    assert lexicon.match(TEXT * 500)[len(rows) :][: len(rows)].tolist() == (rows + np.array([7, 7, 0])).tolist()


def test_a_real_list_is_taken_whole_and_matched(shared_data):
    lexicon = Lexicon.from_file(shared_data / "lexicon" / "thuocl.txt.xz")
    assert lexicon.report.format == "counts"
    # 63 words differ from an earlier one in their characters' form alone (鮃 and 鲆), so they are one word here
    report = lexicon.report
    assert (len(lexicon), report.n_duplicates, report.n_refused, report.n_skipped) == (107_817, 63, 63, 0)
    assert all(normalize(refusal.text.split("\t")[0]) in lexicon for refusal in report.refused)
    words = set(lexicon)
    text = "北京协和医院的医生用青霉素治疗肺炎，法院依照刑事诉讼法作出判决。"
    every = {text[i:j] for i in range(len(text)) for j in range(i + 2, len(text) + 1)}
    assert set(matched(lexicon, text)) == every & words
    assert len(every & words) > 5
