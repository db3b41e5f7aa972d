"""The benchmark of tokens measures what it says."""

import bench_tokens
import pytest

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary


def test_tokens_are_counted_over_the_lines_that_were_read(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("研究生活\n\n 很充实 \n研究\n", encoding="utf-8")
    lines = bench_tokens.first_lines(corpus, 20e-6)
    assert lines == ["研究生活", "很充实"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"研究生活很充实"]
    vocabulary = JointVocabulary(pieces=pieces, words=["研究", "研究生", "生活", "充实"])
    result = bench_tokens.bench_tokens(lines, vocabulary, n_rounds=1)
    of_all, _, of_pieces = (row["tokens a character"] for row in result["rows"])
    assert (of_all, of_pieces) == (11 / 7, 1.0)


def test_a_corpus_without_text_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "corpus.txt").write_text("\n \n", encoding="utf-8")
    JointVocabulary(pieces=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "研"], words=[]).save(tmp_path / "vocab")
    given = ["bench_tokens.py", str(tmp_path / "corpus.txt"), "--vocab", str(tmp_path / "vocab")]
    monkeypatch.setattr("sys.argv", given)
    with pytest.raises(SystemExit):
        bench_tokens.main()
    assert "no line with text" in capsys.readouterr().err
