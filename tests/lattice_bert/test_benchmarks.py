"""The benchmarks of Lattice-BERT measure what they say."""

import numpy as np
import pytest
import tiny_corpus
import tiny_pretraining
import tiny_tasks

from benchmarks.accuracy import adapter
from benchmarks.speed import tokens
from cige.errors import CigeError
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lexicon.vectors import VectorTable

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


def test_words_at_the_input_and_after_a_layer_are_compared(tmp_path, monkeypatch):
    """Each model is pre-trained once and fine-tuned with each seed; a second call runs nothing again."""
    texts = {"Lattice-BERT": tiny_pretraining.TEXT, "BERT-our": tiny_pretraining.TEXT + OF_CHARACTERS}
    recipes = {}
    for number, (name, text) in enumerate(texts.items()):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text.replace("dropout_prob: 0.1}", "dropout_prob: 0.1, relations: null}"), encoding="utf-8")
        recipes[name] = str(path)
    monkeypatch.setattr(adapter, "RECIPES", recipes)
    words = tiny_corpus.WORDS
    vectors = np.random.default_rng(0).normal(size=(len(words), 6)).astype(np.float32)
    np.savez(tmp_path / "word.npz", words="\n".join(words), vectors=vectors, counts=np.ones(len(words), np.int64))
    settings = adapter.Settings(
        tiny_corpus.data_folder(tmp_path / "corpus", segment_words=True),
        tiny_tasks.pair_folder(tmp_path / "tasks"),
        tmp_path / "word.npz",
        changes=["short.n_steps=2", "long.n_steps=0", "training.eval_every=2 steps", "schedule.warmup=1 steps"],
        layers=(1, 2),
        residual="plain",
        random_vectors=True,
        tasks=("afqmc",),
        tuning=["training.n_epochs=1", "max_pieces=40"],
        n_seeds=2,
    )
    rows = list(adapter.rows_of(settings, tmp_path / "runs"))
    kinds = ("words", "random vectors of words")
    adapters = [f"BERT-our, {kind} after layer {layer}" for layer in (1, 2) for kind in kinds]
    assert [row["model"] for row in rows] == ["Lattice-BERT", "BERT-our", *adapters]
    assert all(" ± " in row["afqmc accuracy"] and row["fine-tuning minutes"] > 0 for row in rows)
    assert len({row["million tokens"] for row in rows[1:]}) == 1 and rows[0]["million tokens"] > 0
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("result.json")}
    assert len(written) == 2 + 6 * 2
    assert list(adapter.rows_of(settings, tmp_path / "runs")) == rows
    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_random_vectors_of_words_are_as_long_as_their_own():
    own = np.random.default_rng(1).normal(size=(5, 6)).astype(np.float16)
    drawn = adapter._random(VectorTable(list("甲乙丙丁戊"), own))
    lengths = [np.linalg.norm(table.astype(np.float32), axis=1) for table in (own, drawn.vectors)]
    assert drawn.words == list("甲乙丙丁戊") and drawn.vectors.dtype == np.float16
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-2) and not np.allclose(own, drawn.vectors, atol=0.1)


OF_CHARACTERS = "instances: {use_words: false, masking: words}\n"
