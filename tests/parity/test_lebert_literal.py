"""LEBERT equals a literal transcription of its description, one character, word and score at a time, in float64.

The words of a character, the adapter and the layers of the BERT around it are written out as the paper and the released
code (liuwei1206/LEBERT @ 60668c0) are described, without masks, batches or padding.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import torch
import transformers
from tiny_bert import write_bert

from cige.models.lebert import RELEASED, LebertConfig
from cige.models.model import LatticeModel
from cige.nn.bert import BertFeatures

TEXTS = ["李明在北京市长江大桥。", "重庆人和药店", "好", "中国银行的经理来自清华大学"]
N_LAYERS = 3


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert") / "tiny", n_layers=N_LAYERS)


def made(bert: Path, **settings: object) -> LatticeModel:
    config = replace(LebertConfig(bert=str(bert)), **settings)
    model = tiny.model(config=config, architecture="lebert", features=BertFeatures.load(bert, tuned=True))
    with torch.no_grad():
        for weight in model.tagger.encoder.adapter.parameters():  # so large that words matter
            weight.normal_(std=0.5)
    model.lexicon.add("江大", "庆人和", "银行的")  # user words, which cross the words of the lexicon
    return model


def words_from_left(n_chars: int, spans: list[tuple[int, int]], max_words: int) -> list[list[int]]:
    """The numbers of the words of each character, as the released code fills its places."""
    found: list[list[int]] = [[] for _ in range(n_chars)]
    for start in range(n_chars):
        starting = sorted((end, k) for k, (s, end) in enumerate(spans) if s == start and end - s > 1)
        room = max_words - len(found[start])
        for end, k in starting[:room]:
            for char in range(start, end):
                found[char].append(k)
    return found


def words_longest_first(
    n_chars: int, spans: list[tuple[int, int]], is_user: list[bool], max_words: int
) -> list[list[int]]:
    found = []
    for char in range(n_chars):
        inside = [k for k, (start, end) in enumerate(spans) if start <= char < end]
        inside.sort(key=lambda k: (not is_user[k], spans[k][0] - spans[k][1], spans[k][0]))
        found.append(inside[:max_words])
    return found


def adapted(adapter: torch.nn.Module, h: torch.Tensor, vectors: list[torch.Tensor], no_word: torch.Tensor | None):
    """One hidden vector h with the words of its character."""
    if not vectors and no_word is not None:
        vectors = [no_word]
    w1, b1 = adapter.word_in.weight, adapter.word_in.bias
    w2, b2 = adapter.word_out.weight, adapter.word_out.bias
    transformed = [w2 @ torch.tanh(w1 @ e + b1) + b2 for e in vectors]
    scores = [float(h @ (adapter.bilinear.weight.T @ v)) for v in transformed]
    total = sum(torch.exp(torch.tensor(scores, dtype=torch.float64)).tolist())
    for v, score in zip(transformed, scores, strict=True):
        h = h + float(torch.exp(torch.tensor(score, dtype=torch.float64))) / total * v
    mean = h.mean()
    variance = ((h - mean) ** 2).mean()
    return adapter.norm.weight * (h - mean) / torch.sqrt(variance + 1e-12) + adapter.norm.bias


@pytest.mark.parametrize("after_layer", [1, 2, N_LAYERS])
@pytest.mark.parametrize("max_words", [1, 2, 5])
@pytest.mark.parametrize("released", [False, True], ids=["ours", "released"])
@torch.no_grad()
def test_equals_a_literal_transcription(bert, after_layer, max_words, released):
    model = made(bert, after_layer=after_layer, max_words=max_words, **(RELEASED if released else {}))
    encoder = model.tagger.encoder.double()
    batch, lattices = model.encode(TEXTS)
    found = encoder(batch)

    network = transformers.AutoModel.from_pretrained(bert).eval().double()
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    table, adapter = encoder.embeddings.word, encoder.adapter
    n_cut = 0
    for row, lattice in enumerate(lattices):
        spans = [(start, end) for start, end, _ in lattice.words.tolist()]
        n_chars = lattice.n_chars
        if released:
            words = words_from_left(n_chars, spans, max_words)
        else:
            words = words_longest_first(n_chars, spans, lattice.is_user.tolist(), max_words)
        n_cut += sum(
            start <= t < end and k not in words[t] for t in range(n_chars) for k, (start, end) in enumerate(spans)
        )
        vectors = table(torch.from_numpy(model.vocabulary.encode(lattice).words))
        hidden = network.embeddings(tokenizer(lattice.text, return_tensors="pt")["input_ids"])
        assert hidden.shape[1] == n_chars + 2
        for number, layer in enumerate(network.encoder.layer, start=1):
            hidden = layer(hidden)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
            if number == after_layer:
                of_place = [[], *words, []]  # [CLS] and [SEP] have no words
                changed = [
                    adapted(adapter, h, [vectors[k] for k in own], adapter.no_word)
                    for h, own in zip(hidden[0], of_place, strict=True)
                ]
                hidden = torch.stack(changed)[None]
        torch.testing.assert_close(found[row, :n_chars].double(), hidden[0, 1:-1], atol=1e-6, rtol=1e-6)
    assert (n_cut > 0) == (max_words < 5)  # the limit binds where it is meant to


@torch.no_grad()
def test_a_fixed_bert_and_long_texts_read_the_same_words(bert):
    """In windows, each character reads the words of the whole text."""
    model = made(bert)
    long = "李明在北京市长江大桥。" * 4
    batch, (lattice,) = model.encode([long])
    assert lattice.n_chars > model.tagger.encoder.features.n_chars_at_once
    _, shares = model.tagger.encoder.read_words(batch)
    inside = (lattice.words[:, 0] <= torch.arange(len(long))[:, None].numpy()) & (
        torch.arange(len(long))[:, None].numpy() < lattice.words[:, 1]
    )
    assert ((shares[0].numpy() > 0) == inside).all()  # fewer than five words a character here
