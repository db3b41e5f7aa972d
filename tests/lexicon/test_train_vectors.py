"""Training vectors on a tiny corpus."""

import builtins
import lzma
import os
import subprocess
import sys

import numpy as np
import pytest

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.train_vectors import _write_units, longest_match, train_vectors
from cige.lexicon.vectors import VectorTable

pytest.importorskip("gensim")

CORPUS = "南京市长江大桥，在南京。\n\n罗氏 婴儿配方粉Ａ型\n" * 5


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt.xz"
    path.write_bytes(lzma.compress(CORPUS.encode()))
    return path


def train(corpus, out, **settings):
    trained = train_vectors(corpus, out, width=8, epochs=1, **settings)
    table = VectorTable.load(trained.path)
    assert (trained.n_words, 8) == table.vectors.shape
    return trained, table


def test_a_seed_beyond_32_bits(corpus, tmp_path):
    train(corpus, tmp_path / "out", seed=2**40 + 7)  # it was an error of NumPy


def test_characters(corpus, tmp_path):
    trained, table = train(corpus, tmp_path / "out")
    assert trained.path == tmp_path / "out" / "char.npz"
    assert set(table.words) == set(CORPUS.replace("Ａ", "A")) - {"\n", " "}
    assert table.counts[table.row("南")] == 10
    assert table.counts.tolist() == sorted(table.counts, reverse=True)
    assert trained.n_tokens == sum(not char.isspace() for char in CORPUS)
    assert table.vectors.dtype == np.float16 and np.isfinite(table.vectors).all()


def test_bigrams_end_with_a_mark_and_never_hold_white_space(corpus, tmp_path):
    _, table = train(corpus, tmp_path / "out", unit="bigram")
    assert {"南京", "京市", "粉A", "A型", "型</s>", "。</s>"} <= set(table.words)
    assert "氏 " not in table.words and " 婴" not in table.words
    assert table.counts[table.row("南京")] == 10


def test_words_and_the_words_of_a_lexicon(corpus, tmp_path):
    pytest.importorskip("jieba")
    _, plain = train(corpus, tmp_path / "plain", unit="word")
    assert "婴儿配方粉" not in plain and "南京" in plain
    lexicon = Lexicon.from_words(["市长", "婴儿配方粉", "南京市", "江大", "大桥，在南京"])
    _, table = train(corpus, tmp_path / "with", unit="word", lexicon=lexicon)
    assert {"婴儿配方粉", "南京市", "江大"} <= set(table.words)
    assert not any(char.isspace() for word in table.words for char in word)
    _, again = train(corpus, tmp_path / "again", unit="word")
    assert set(again.words) == set(plain.words), "a lexicon must not change jieba for others"


def test_longest_match():
    lexicon = Lexicon.from_words(["南京", "南京市", "市长", "长江", "江大桥"])
    assert longest_match("在南京市长江大桥", lexicon) == ["在", "南京市", "长江", "大", "桥"]


def test_rare_units_have_no_vector(corpus, tmp_path):
    _, table = train(corpus, tmp_path / "out", min_count=6)
    assert set(table.words) == {"南", "京"}
    with pytest.raises(LexiconError, match="no char occurs 99 times"):
        train(corpus, tmp_path / "none", min_count=99)


def test_the_same_seed_gives_the_same_vectors_whatever_pythons_hash_seed(corpus, tmp_path):
    settings = {"unit": "bigram", "width": 8, "epochs": 2}
    for seed in (7, 8):
        train_vectors(str(corpus), tmp_path / str(seed), seed=seed, **settings)
    code = "import sys; from cige.lexicon.train_vectors import train_vectors; "
    code += f"train_vectors({str(corpus)!r}, sys.argv[1], seed=7, **{settings})"
    another_hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = os.environ | {"PYTHONHASHSEED": another_hash_seed}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "again")], check=True, env=environment)
    first, again, other = (VectorTable.load(tmp_path / name / "bigram.npz") for name in ("7", "again", "8"))
    assert first.words == again.words
    assert np.array_equal(first.vectors, again.vectors)
    assert not np.array_equal(first.vectors, other.vectors)


def test_long_lines_are_cut_not_dropped(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("长" * 25_000)
    _write_units(path, tmp_path / "units.txt", "char", None)
    lines = (tmp_path / "units.txt").read_text().splitlines()
    assert [len(line.split()) for line in lines] == [10_000, 10_000, 5_000]


def test_bad_input(corpus, tmp_path):
    with pytest.raises(LexiconError, match="expected one of char, bigram, word"):
        train_vectors(corpus, tmp_path, unit="syllable")
    with pytest.raises(LexiconError, match="needs no lexicon"):
        train_vectors(corpus, tmp_path, lexicon=Lexicon.from_words(["南京"]))
    with pytest.raises(LexiconError, match="cannot be read"):
        train_vectors(tmp_path / "nowhere.txt", tmp_path)
    (tmp_path / "gb.txt").write_bytes(b"ok\n" + "南京".encode("gb18030"))
    with pytest.raises(LexiconError, match=r"gb\.txt, line 2: not UTF-8"):
        train_vectors(tmp_path / "gb.txt", tmp_path)


def test_a_missing_library_is_named(corpus, tmp_path, monkeypatch):
    real = builtins.__import__

    def without_gensim(name, *args, **kwargs):
        if name.startswith("gensim"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_gensim)
    with pytest.raises(LexiconError, match=r"needs gensim: .*pip install .*\[train\]"):
        train_vectors(corpus, tmp_path)
