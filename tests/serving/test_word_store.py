"""WordStore: words that survive, that other processes see, and that no two writers lose."""

import json
import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UserWord
from cige.serving.refusals import Refused
from cige.serving.word_store import LexiconFull, StoreError, VersionConflict, WordStore

TEXT = "南京市长江大桥在南京"
WORDS = ["南京", "市长", "长江", "江大桥", "南京市", "长江大桥"]
FACTS = [(None, "evidence"), ("LOC", "evidence"), ("ROAD", "force"), (None, "block"), None]  # None: the word is removed


def start():
    lexicon = Lexicon.from_words(["南京", "市长", "长江"])
    lexicon.add("江大桥", label="LOC")
    return lexicon


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kept" / "words.json"


def words(store):
    return [(w.text, w.label, w.mode) for w in store.current().entries]


@pytest.mark.parametrize("in_file", [True, False])
def test_changes_count_at_once_and_leave_the_lexicon_of_the_start_alone(path, in_file):
    lexicon = start()
    store = WordStore([lexicon], path if in_file else None)
    assert store.current().version == 0 and words(store) == [("江大桥", "LOC", "evidence")]
    assert store.add([UserWord("南京市", "LOC"), UserWord("桥", "LOC", "force")]).version == 1
    assert store.remove(["长江", "江大桥"]).version == 2
    assert words(store) == [("南京市", "LOC", "evidence"), ("桥", "LOC", "force")]
    now = store.current()
    assert now.removed == ["长江", "江大桥"] and "长江" not in now.lexicons[0]
    store.add([UserWord("江大桥"), UserWord("长江")])
    assert store.current().removed == [] and "长江" in store.current().lexicons[0]
    assert lexicon.user_words == ("江大桥",) and lexicon.removed_words == ()


@pytest.mark.parametrize("in_file", [True, False])
def test_removing_undoes_what_was_added_here_and_then_removes_what_was_there_before(path, in_file):
    store = WordStore([start()], path if in_file else None)
    store.add([UserWord("长江", "LOC"), UserWord("江大桥", "ROAD")])
    store.remove(["长江", "江大桥"])
    assert words(store) == [("江大桥", "LOC", "evidence")] and store.current().removed == []
    assert "长江" in store.current().lexicons[0]
    store.remove(["长江", "江大桥"])
    assert words(store) == [] and "长江" not in store.current().lexicons[0]
    store.add([UserWord("长江", "LOC")])
    assert "长江" in store.current().lexicons[0] and store.current().removed == ["江大桥"]
    store = WordStore([start()], path) if in_file else store
    store.remove(["长江"])
    assert "长江" not in store.current().lexicons[0] and store.current().removed == ["长江", "江大桥"]
    with pytest.raises(LexiconError, match="长江: not in the lexicon"):
        store.remove(["长江"])


def test_what_was_changed_is_there_after_a_restart_and_in_another_process(path):
    store, other = WordStore([start()], path), WordStore([start()], path)
    store.add([UserWord("ＡＢ公司", "ORG")])
    assert words(other) == words(store) == [("江大桥", "LOC", "evidence"), ("AB公司", "ORG", "evidence")]
    other.remove(["AB公司"])
    assert store.current().version == 2 and words(WordStore([start()], path)) == words(store)


def test_all_words_or_none(path):
    store = WordStore([start()], path, max_words=2)
    with pytest.raises(Refused, match=r"'好' \(single character\)"):
        store.add([UserWord("南京市"), UserWord("好")])
    with pytest.raises(Refused, match=r"'南京市' \(listed before with another label or mode\)"):
        store.add([UserWord("南京市", "LOC"), UserWord("南京市", "ORG")])
    with pytest.raises(LexiconError, match="没有: not in the lexicon"):
        store.remove(["南京", "没有"])
    with pytest.raises(LexiconFull, match="3 words would be there; at most 2 may"):
        store.add([UserWord(text) for text in ("甲甲", "乙乙", "丙丙")])
    assert store.current().version == 0 and not path.exists()


def test_a_call_without_words_is_no_change(path):
    store = WordStore([start()], path)
    assert store.add([]).version == 0 and not path.exists()
    store.add([UserWord("甲甲")])
    assert store.add([]).version == store.remove([]).version == 1
    with pytest.raises(VersionConflict):
        store.add([], version=0)


def test_a_change_may_insist_on_a_version(path):
    store = WordStore([start()], path)
    store.add([UserWord("甲甲")], version=0)
    with pytest.raises(VersionConflict, match="made for version 0; the lexicon has version 1"):
        store.remove(["甲甲"], version=0)
    store.remove(["甲甲"], version=1)


def test_writers_in_threads_and_processes_lose_nothing(path):
    code = (
        "import sys; from pathlib import Path; from cige.lexicon.lexicon import Lexicon\n"
        "from cige.lexicon.user_word import UserWord; from cige.serving.word_store import WordStore\n"
        "store = WordStore([Lexicon.from_words(['南京'])], Path(sys.argv[1]))\n"
        "for k in range(15): store.add([UserWord(f'{sys.argv[2]}{k}')])"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("甲", "乙")]
    store = WordStore([Lexicon.from_words(["南京"])], path)
    threads = [
        threading.Thread(target=lambda name=name: [store.add([UserWord(f"{name}{k}")]) for k in range(15)])
        for name in ("丙", "丁")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0, 0]
    assert {word for word, _, _ in words(store)} == {f"{name}{k}" for name in "甲乙丙丁" for k in range(15)}
    assert store.current().version == 60


BAD_LABEL = '{"version": 1, "added": ["好"], "removed": [], "labels": {"好": "*"}}'


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', BAD_LABEL])
def test_a_damaged_file_is_told_keeps_what_was_read_and_is_not_written_over(path, content):
    store = WordStore([start()], path)
    store.add([UserWord("甲甲")])
    sound = path.read_text()
    path.write_text(content)
    assert words(store)[-1][0] == "甲甲"
    for refused in (store.check, lambda: store.add([UserWord("乙乙")]), lambda: WordStore([start()], path)):
        with pytest.raises(StoreError, match=r"words\.json: damaged"):
            refused()
    assert path.read_text() == content
    path.write_text(sound)
    store.check()
    assert store.add([UserWord("乙乙")]).version == 2


def test_an_older_file_put_back_does_not_lower_the_version(path):
    store = WordStore([start()], path)
    store.add([UserWord("甲一")])
    old = path.read_bytes()
    newest = store.add([UserWord("乙二")])
    path.write_bytes(old)
    assert store.current().version == newest.version == 2
    with pytest.raises(StoreError, match="version 1, older than version 2") as error:
        store.check()
    assert "damaged" not in str(error.value)
    assert WordStore([start()], path).current().version == 1, "a server that starts has read nothing newer"


def test_a_file_that_was_removed_while_serving(path):
    store = WordStore([start()], path)
    store.add([UserWord("甲甲")])
    path.unlink()
    with pytest.raises(StoreError, match="gone; the next change writes it again"):
        store.check()
    assert words(store)[-1][0] == "甲甲"
    store.add([UserWord("乙乙")])
    assert json.loads(path.read_text())["added"] == ["甲甲", "乙乙"]
    store.check()


def test_a_link_to_the_file_stays_a_link(tmp_path):
    link, file = tmp_path / "words.json", tmp_path / "volume" / "words.json"
    link.symlink_to(file)
    WordStore([start()], link).add([UserWord("甲甲")])
    assert link.is_symlink() and json.loads(file.read_text(encoding="utf-8"))["added"] == ["甲甲"]
    WordStore([start()], file).add([UserWord("乙乙")])
    assert words(WordStore([start()], link))[1:] == [("甲甲", None, "evidence"), ("乙乙", None, "evidence")]


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made"):
        WordStore([start()], tmp_path / "file" / "words.json")
    (tmp_path / "folder").mkdir()
    store = WordStore([start()], tmp_path / "words.json")
    (tmp_path / "words.json.lock").mkdir()
    with pytest.raises(StoreError, match="cannot be changed"):
        store.add([UserWord("甲甲")])
    assert store.current().version == 0


def test_a_change_counts_for_the_lexicons_of_all_models(path):
    store = WordStore([Lexicon.from_words(["南京", "长江"]), start()], path)
    store.add([UserWord("南京市", "LOC")])
    assert [("南京市" in lexicon, len(lexicon.user_entries)) for lexicon in store.current().lexicons] == [
        (True, 1),
        (True, 2),
    ]
    store.remove(["市长"])  # the second has it
    store.remove(["长江"])
    assert ["长江" in lexicon or "市长" in lexicon for lexicon in store.current().lexicons] == [False, False]
    assert {word for word, _, _ in words(store)} == {"南京市", "江大桥"}
    with pytest.raises(LexiconError, match="没有: not in the lexicon"):
        store.remove(["没有"])


@settings(max_examples=40)
@given(st.lists(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(FACTS)), max_size=4), max_size=6))
def test_changes_after_one_another_give_what_all_of_them_give_at_once(tmp_path_factory, changes):
    path = tmp_path_factory.mktemp("store") / "words.json"
    writer, reader = WordStore([start()], path), WordStore([start()], path)
    for change in changes:
        added = {text: UserWord(text, *facts) for text, facts in change if facts is not None}
        if added:
            writer.add(list(added.values()))
        for text, facts in change:
            if facts is None and text in writer.current().lexicons[0]:
                writer.remove([text])
        whole = WordStore([start()], path).current()
        for store in (writer, reader):
            now = store.current()
            assert (now.version, now.changes, now.removed) == (whole.version, whole.changes, whole.removed)
            for one, other in zip(now.lexicons, whole.lexicons, strict=True):
                assert one.user_entries == other.user_entries and one.removed_words == other.removed_words
                shown = [
                    [(a, b, lexicon.word(k)) for a, b, k in lexicon.match(TEXT).tolist()] for lexicon in (one, other)
                ]
                assert sorted(shown[0]) == sorted(shown[1])


def test_words_have_the_order_of_the_file_where_one_was_removed_and_added_again(path):
    """Else two workers would list them in different orders, and pages of the list would miss words."""
    writer, reader = WordStore([start()], path), WordStore([start()], path)
    writer.add([UserWord("甲甲"), UserWord("乙乙")])
    assert len(reader.current().changes.added) == 2
    writer.remove(["甲甲"])
    writer.add([UserWord("甲甲")])  # before the reader reads again
    assert words(reader) == words(writer) == words(WordStore([start()], path))


def test_a_change_of_a_long_list_packs_the_changed_words_alone(path, monkeypatch):
    writer, reader = WordStore([start()], path), WordStore([start()], path)
    writer.add([UserWord(f"词条{k}号", "PRODUCT") for k in range(1_000)])
    assert len(reader.current().entries) == 1_001
    packed = []
    usual = Lexicon.changed

    def changed(lexicon, changes):
        packed.append(len(changes.added))
        return usual(lexicon, changes)

    monkeypatch.setattr(Lexicon, "changed", changed)
    writer.add([UserWord("南京市"), UserWord("词条7号", "BRAND"), UserWord("词条8号", "PRODUCT")])
    assert words(reader) == words(writer) and ("词条7号", "BRAND", "evidence") in words(reader)
    assert packed == [2, 2]


def test_words_can_be_read_while_a_change_is_made(path, monkeypatch):
    """A change of many words takes a second, for which no request should wait."""
    store = WordStore([start()], path)
    store.add([UserWord("甲甲")])
    entered, gate = threading.Event(), threading.Event()
    usual = store._after

    def slow(*given):
        entered.set()
        assert gate.wait(60)
        return usual(*given)

    monkeypatch.setattr(store, "_after", slow)
    change = threading.Thread(target=store.add, args=([UserWord("乙乙")],))
    change.start()
    assert entered.wait(60) and store.current().version == 1
    store.check()
    gate.set()
    change.join(60)
    assert store.current().version == 2


def test_a_word_is_removed_with_whichever_marks_it_was_added(path):
    store = WordStore([start()], path)
    store.add([UserWord("西门子（中国）", "ORG")])
    store.add([UserWord("西门子(中国)", "X")])
    assert words(store)[-1:] == [("西门子(中国)", "X", "evidence")] and len(words(store)) == 2
    path.write_text(path.read_text(encoding="utf-8").replace("(中国)", "（中国）"), encoding="utf-8")  # as of old
    store = WordStore([start()], path)
    store.add([UserWord("西门子(中国)", "Y")])
    assert words(store)[-1:] == [("西门子(中国)", "Y", "evidence")] and len(words(store)) == 2
    path.write_text(path.read_text(encoding="utf-8").replace("(中国)", "（中国）"), encoding="utf-8")
    store = WordStore([start()], path)
    store.remove(["西门子(中国)"])
    assert len(words(store)) == 1 and store.current().removed == []
