"""`cige lexicon` and `cige vectors`: building, matching, converting and training."""

import json

import pytest
import tiny

from cige.lexicon.lexicon import Lexicon


def test_lexicon_build_match_and_info(run, tmp_path):
    (tmp_path / "words.txt").write_text("南京\t5\n南京市\t3\n长江大桥\t1\n一\t9\n", encoding="utf-8")
    code, out, _ = run("lexicon", "build", tmp_path / "words.txt", tmp_path / "lex", "--min-count", "2")
    assert code == 0 and "2 taken, 1 refused, 1 not needed" in out and "single character" in out
    assert list(Lexicon.load(tmp_path / "lex")) == ["南京", "南京市"]
    (tmp_path / "own.txt").write_text("大桥\n", encoding="utf-8")
    argv = ["lexicon", "match", "南京市大桥", "--lexicon", tmp_path / "lex", "--lexicon-add", tmp_path / "own.txt"]
    assert run(*argv)[1].splitlines() == ["0-2\t南京", "0-3\t南京市", "3-5\t大桥*"]
    assert json.loads(run(*argv, "--format", "jsonl")[1])["words"][2] == {
        "start": 3, "end": 5, "text": "大桥", "is_user": True,
    }  # fmt: skip
    info = run("lexicon", "info", tmp_path / "lex")[1]
    assert "words        2" in info and Lexicon.load(tmp_path / "lex").fingerprint in info


def test_lexicon_of_a_model_or_of_a_list(run, model, tmp_path):
    assert f"words        {len(tiny.WORDS)}" in run("lexicon", "info", model)[1]
    (tmp_path / "words.txt").write_text("南京\n", encoding="utf-8")
    assert run("lexicon", "match", "在南京", "--lexicon", tmp_path / "words.txt")[1] == "1-3\t南京\n"


def test_vectors_convert(run, tmp_path):
    (tmp_path / "w2v.txt").write_text("2 3\n南京 1 2 3\n北京 4 5 6\n", encoding="utf-8")
    code, out, _ = run("vectors", "convert", tmp_path / "w2v.txt", tmp_path / "vectors")
    assert code == 0 and "2 taken" in out
    from cige.lexicon.vectors import VectorTable

    assert VectorTable.load(tmp_path / "vectors").width == 3


def test_vectors_train(run, tmp_path):
    pytest.importorskip("gensim")
    (tmp_path / "corpus.txt").write_text("南京市长江大桥\n北京市\n" * 20, encoding="utf-8")
    code, out, _ = run("vectors", "train", tmp_path / "corpus.txt", tmp_path / "v", "--unit", "char", "--width", "4")
    assert code == 0 and "wrote" in out and (tmp_path / "v" / "char.npz").is_file()
