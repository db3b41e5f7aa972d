"""cige lattice-bert pretrain vocab: a corpus and a vocab.txt -> a saved vocabulary."""

import pytest

from cige.cli import main
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary

pytest.importorskip("jieba")

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"研究生活很充实"]


@pytest.fixture
def run(tmp_path, capsys):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    (tmp_path / "corpus.txt").write_text("研究研究生活，很充实。\n\n研究。\n", encoding="utf-8")

    def run_command(*options, corpus="corpus.txt"):
        paths = [tmp_path / corpus, tmp_path / "made", "--pieces", tmp_path / "vocab.txt"]
        try:
            code = main(["lattice-bert", "pretrain", "vocab", *map(str, [*paths, *options])])
        except SystemExit as stop:  # argparse
            code = stop.code
        return code, *capsys.readouterr()

    return run_command


def test_makes_a_vocabulary(run, tmp_path):
    code, out, err = run("--words", 2)
    assert (code, err) == (0, "")
    assert "3 lines, 14 characters" in out and "14 tokens: 12 pieces and 2 words" in out
    made = JointVocabulary.load(tmp_path / "made")
    assert made.pieces == PIECES and made.n_words == 2 and made.words[0] == "研究"


def test_words_of_ones_own(run, tmp_path):
    (tmp_path / "own.txt").write_text("活很充\n研\nA股\n", encoding="utf-8")
    code, out, _ = run("--words", 3, "--include", tmp_path / "own.txt")
    assert code == 0 and "single character" in out
    assert JointVocabulary.load(tmp_path / "made").words == ["活很充", "a股", "研究"]
    assert "left out" not in out


def test_words_of_ones_own_that_are_too_many_are_told(run, tmp_path):
    (tmp_path / "own.txt").write_text("活很充\nA股\n实研\n很充\n", encoding="utf-8")
    code, out, _ = run("--words", 2, "--include", tmp_path / "own.txt")
    assert code == 0 and JointVocabulary.load(tmp_path / "made").words == ["活很充", "a股"]
    assert "own.txt: its last 2 words left out" in out and "no more than 2 words" in out


def test_a_folder_of_something_else_is_refused_before_the_corpus_is_read(run, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "letter.txt").write_text("dear", encoding="utf-8")
    code, _, err = run(corpus="none.txt")
    assert code == 2 and "made: already exists and is not a joint vocabulary folder" in err
    (tmp_path / "made" / "letter.txt").unlink()
    assert run()[0] == 0  # an empty folder
    assert run("--words", 1)[0] == 0 and JointVocabulary.load(tmp_path / "made").n_words == 1  # an older vocabulary


def test_mistakes_are_told_in_one_line(run, tmp_path):
    (tmp_path / "junk").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "english.txt").write_text("hello world\n", encoding="utf-8")
    for corpus, message in (
        ("none.txt", "none.txt: cannot be read"),
        ("junk", "not UTF-8 text"),
        ("english.txt", "no Chinese word"),
    ):
        code, _, err = run(corpus=corpus)
        assert code == 2 and message in err and err.count("\n") == 1
    (tmp_path / "vocab.txt").write_text("研\n研\n", encoding="utf-8")
    code, _, err = run(corpus="none.txt")
    assert code == 2 and "vocab.txt, line 2: '研' already occurs" in err
    assert not (tmp_path / "made").exists()
    assert run("--words", "-1")[0] == 2
