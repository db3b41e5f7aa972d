"""Lexicon: building, saving, loading, damage, and a user's changes."""

import json
import pickle
import shutil
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.errors import LexiconError
from cige.folders.manifest import write_manifest
from cige.lexicon import base_words
from cige.lexicon import lexicon as lexicon_module
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.report import WordListWarning
from cige.lexicon.storage import check_lexicon
from cige.lexicon.user_word import UserChanges, UserWord
from cige.text.normalize import normalize

WORDS = ["南京", "南京市", "市长", "长江", "长江大桥", "大桥"]
TEXT = "南京市长江大桥"
MATCHES = [[0, 2, 0], [0, 3, 1], [2, 4, 2], [3, 5, 3], [3, 7, 4], [5, 7, 5]]


@pytest.fixture
def lexicon():
    return Lexicon.from_words(WORDS, counts=[10, 9, 8, 7, 6, 5])


def matched(lexicon, text=TEXT):
    return [text[start:end] for start, end, _ in lexicon.match(text).tolist()]


def test_all_overlapping_words_sorted(lexicon):
    rows = lexicon.match(TEXT)
    assert rows.dtype == np.int32
    assert rows.tolist() == MATCHES
    assert lexicon.match("没有").shape == (0, 3)
    assert lexicon.match("").shape == (0, 3)


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


def test_save_and_load(lexicon, tmp_path):
    lexicon.save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    assert list(loaded) == WORDS
    assert loaded.match(TEXT).tolist() == MATCHES
    assert loaded.fingerprint == lexicon.fingerprint
    assert loaded.count(5) == 5
    assert isinstance(loaded.words.blob.base, np.memmap), "words must stay on disk"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lex"], "nothing left aside"


def test_a_lexicon_without_words_or_counts_survives_saving(tmp_path):
    Lexicon.from_words([]).save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    assert len(loaded) == 0 and loaded.match(TEXT).shape == (0, 3)
    loaded.add("南京")
    assert loaded.match(TEXT).tolist() == [[0, 2, 0]]


def test_saving_keeps_the_users_changes(lexicon, tmp_path):
    lexicon.add("江大桥", "长江")
    lexicon.remove("市长")
    lexicon.save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    assert loaded.user_words == ("江大桥", "长江")
    assert loaded.removed_words == ("市长",)
    assert loaded.match(TEXT).tolist() == lexicon.match(TEXT).tolist()


def test_fingerprint_tells_words_and_their_order_apart():
    assert Lexicon.from_words(["ab", "cd"]).fingerprint != Lexicon.from_words(["cd", "ab"]).fingerprint
    assert Lexicon.from_words(["abc", "de"]).fingerprint != Lexicon.from_words(["ab", "cde"]).fingerprint
    same = Lexicon.from_words(["ab", "cd"])
    same.add("ef")
    assert same.fingerprint == Lexicon.from_words(["ab", "cd"], counts=[1, 2]).fingerprint


def test_saving_over_an_older_lexicon_replaces_it_even_under_a_reader(lexicon, tmp_path):
    folder = tmp_path / "lex"
    lexicon.save(folder)
    old = Lexicon.load(folder)
    Lexicon.from_words(["别的"]).save(folder)
    assert list(Lexicon.load(folder)) == ["别的"]
    assert list(old) == WORDS and old.match(TEXT).tolist() == MATCHES


def test_saving_never_replaces_something_else(lexicon, tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter1.txt").write_text("years of work")
    with pytest.raises(LexiconError, match="will not be replaced"):
        lexicon.save(folder)
    with pytest.raises(LexiconError, match="will not be replaced"):
        lexicon.save(folder / "chapter1.txt")
    assert (folder / "chapter1.txt").read_text() == "years of work"


def test_a_failed_save_leaves_the_old_lexicon(lexicon, tmp_path, monkeypatch):
    folder = tmp_path / "lex"
    lexicon.save(folder)

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(base_words.np, "save", full_disk)
    with pytest.raises(LexiconError, match="No space left"):
        Lexicon.from_words(["别的"], counts=[1]).save(folder)
    monkeypatch.undo()
    assert list(Lexicon.load(folder)) == WORDS
    assert [file.name for file in tmp_path.iterdir()] == ["lex"]


FILES = ["counts.npy", "offsets.npy", "trie_keys.npy", "trie_numbers.npy", "user.json", "words.txt"]


@pytest.fixture
def stored_trie(monkeypatch):
    """Store the trie as lexicons of 200,000 words do; smaller ones build it on loading."""
    monkeypatch.setattr(base_words, "STORED_FROM", 1)


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped", "foreign"])
@pytest.mark.usefixtures("stored_trie")
def test_a_damaged_folder_is_a_clear_error(lexicon, tmp_path, name, damage):
    folder = tmp_path / "lex"
    lexicon.save(folder)
    assert sorted(file.name for file in folder.iterdir()) == sorted([*FILES, "manifest.json"])
    file = folder / name
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "truncated":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "flipped" and name != "manifest.json":
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    else:
        other = Lexicon.from_words(["天津", "天津港", "港口", "渤海", "渤海湾大"], counts=[1, 2, 3, 4, 5])
        other.add("某人")
        other.save(tmp_path / "other")
        shutil.copy(tmp_path / "other" / name, file)
    with pytest.raises(LexiconError) as caught:
        Lexicon.load(folder)
    assert str(folder) in str(caught.value)


def test_no_folder_and_another_kind_of_folder(lexicon, tmp_path):
    with pytest.raises(LexiconError, match="nowhere"):
        Lexicon.load(tmp_path / "nowhere")
    lexicon.save(tmp_path / "lex")
    manifest = tmp_path / "lex" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"kind": "vectors"}))
    with pytest.raises(LexiconError, match="holds 'vectors'"):
        Lexicon.load(tmp_path / "lex")


@pytest.mark.usefixtures("stored_trie")
def test_a_large_lexicon_is_mapped_whole(lexicon, tmp_path):
    lexicon.save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    trie = loaded._base.matcher.trie
    assert all(isinstance(array.base, np.memmap) for array in (trie.keys, trie.numbers, loaded.words.offsets))
    assert loaded.match(TEXT).tolist() == MATCHES
    assert "sha256" in vars(loaded.words), "the fingerprint is known without reading the words"
    assert loaded.fingerprint == lexicon.fingerprint


@pytest.mark.usefixtures("stored_trie")
def test_large_files_are_compared_only_when_asked(lexicon, tmp_path, monkeypatch):
    folder = tmp_path / "lex"
    lexicon.save(folder)
    check_lexicon(folder)
    monkeypatch.setattr(lexicon_module, "CHECKED_BYTES", 100)
    data = bytearray((folder / "trie_numbers.npy").read_bytes())
    data[-1] ^= 1
    (folder / "trie_numbers.npy").write_bytes(data)
    assert len(Lexicon.load(folder)) == 6
    with pytest.raises(LexiconError, match=r"trie_numbers\.npy.*sha256"):
        check_lexicon(folder)


def test_a_folder_of_version_1_is_loaded_and_its_automaton_not_needed(lexicon, tmp_path):
    folder = tmp_path / "lex"
    lexicon.add("江大桥")
    lexicon.save(folder)
    (folder / "automaton.zz").write_bytes(b"an automaton of another library")
    facts = json.loads((folder / "manifest.json").read_text())
    for name in ("max_probes", "vectors", "version", "files"):
        del facts[name]
    write_manifest(folder, **facts, version=1, engine="daachorse 0.5.0")
    loaded = Lexicon.load(folder)
    assert list(loaded) == WORDS and loaded.count(5) == 5 and loaded.fingerprint == lexicon.fingerprint
    assert loaded.match(TEXT).tolist() == lexicon.match(TEXT).tolist()
    loaded.save(folder)
    assert not (folder / "automaton.zz").exists()


def test_a_folder_of_a_later_version_asks_for_an_upgrade(lexicon, tmp_path):
    lexicon.save(tmp_path / "lex")
    manifest = tmp_path / "lex" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": 3}))
    with pytest.raises(LexiconError, match="format version 3, this cige reads up to 2; upgrade"):
        Lexicon.load(tmp_path / "lex")


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


def test_what_cannot_be_added_is_explained(lexicon):
    with pytest.raises(TypeError, match=r"label='PER'"):
        lexicon.add("张三", "PER")
    for words in ({"张三": "PER"}, ["张三", "李四"], [UserWord("张三")]):
        for options in ({"label": "LOC"}, {"mode": "block"}, {"inside": True}):
            with pytest.raises(LexiconError, match=r"add\(\*words, label='COMPANY'\), or leave out label="):
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


def test_saving_keeps_labels_and_modes_and_folders_without_them_are_as_before(lexicon, tmp_path):
    lexicon.add("南京大桥")
    lexicon.save(tmp_path / "plain")
    assert json.loads((tmp_path / "plain" / "user.json").read_text()) == {"added": ["南京大桥"], "removed": []}
    lexicon.add("江大桥", label="PLACE")
    lexicon.add("桥", label="PLACE", mode="force")
    lexicon.add("长江", mode="block")
    lexicon.save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    assert loaded.user_entries == lexicon.user_entries
    assert loaded.match(TEXT).tolist() == lexicon.match(TEXT).tolist()
    assert pickle.loads(pickle.dumps(loaded)).user_entries == lexicon.user_entries


def test_labels_of_a_folder_that_cannot_be_are_an_error(lexicon, tmp_path):
    lexicon.save(tmp_path / "lex")
    file = tmp_path / "lex" / "user.json"
    file.write_text(json.dumps({"added": ["江大桥"], "removed": [], "labels": {"江大桥": "*"}}), encoding="utf-8")
    facts = json.loads((tmp_path / "lex" / "manifest.json").read_text())
    write_manifest(tmp_path / "lex", **{name: value for name, value in facts.items() if name != "files"})
    with pytest.raises(LexiconError, match=r"user.json: '江大桥' \(not a label"):
        Lexicon.load(tmp_path / "lex")


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("南京", r"expected a list of words, such as \['南京'\]"),
        ([b"x"], "expected strings or UserWords, got bytes"),
        ([UserWord(3)], "expected strings or UserWords, got int"),
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
