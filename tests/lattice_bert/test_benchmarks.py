"""The benchmark of tokens measures what it says."""

import pytest

from benchmarks.speed import tokens
from cige.errors import CigeError
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_tokens_are_counted_over_the_lines_that_were_read(tmp_path):
    corpus, vocab = tmp_path / "corpus.txt", tmp_path / "vocab"
    corpus.write_text("研究生活\n\n 很充实 \n研究\n", encoding="utf-8")
    assert tokens.first_lines(corpus, 20e-6) == ["研究生活", "很充实"]
    words = ["研究", "研究生", "生活", "充实"]
    JointVocabulary(pieces=[*SPECIAL, *"研究生活很充实"], words=words).save(vocab)
    result = tokens.bench(corpus, vocab=vocab, megabytes=20e-6, rounds=1)
    of_all, _, of_pieces = (row["tokens a character"] for row in result["rows"])
    assert (of_all, of_pieces) == (11 / 7, 1.0)


def test_a_corpus_without_text_is_refused(tmp_path):
    (tmp_path / "corpus.txt").write_text("\n \n", encoding="utf-8")
    JointVocabulary(pieces=[*SPECIAL, "研"], words=[]).save(tmp_path / "vocab")
    with pytest.raises(CigeError, match="no line with text"):
        tokens.bench(tmp_path / "corpus.txt", vocab=tmp_path / "vocab")
