"""BERT-our with a word adapter: a literal reading, folders, tasks, rows that are used, and what it cannot do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny
import tiny_lattice_bert
import torch

from cige.cli import main
from cige.errors import ModelError
from cige.lattice_bert.encoder.pretrained import LatticeBertFeatures, PretrainedLatticeBert, add_adapter
from cige.lattice_bert.encoder.token_batch import collate_tokens
from cige.lattice_bert.encoder.word_adapter import WordAdapterConfig
from cige.lexicon.vectors import VectorTable

TEXTS = ["南京市长江大桥", "李明2020年在清华大学。", "好", "今天天气很好"]
WORDS = tiny.random_table([*tiny.WORDS, "好", "Abc", "未见"], 6, seed=5)


def bert_our(**settings: object) -> PretrainedLatticeBert:
    return tiny_lattice_bert.pretrained(words=[], heads=True, **settings)


def made(*, random: bool = True, **settings: object) -> PretrainedLatticeBert:
    config = WordAdapterConfig(**({"n_words": 99, "word_width": 6} | settings))
    found = add_adapter(bert_our(), WORDS, config)
    if random:
        torch.manual_seed(3)
        with torch.no_grad():
            for weight in found.bert.adapter.adapter.parameters():
                weight.normal_(std=0.5)
    found.bert.eval()
    return found


def char_vectors(model: PretrainedLatticeBert, texts: list[str] = TEXTS) -> list[torch.Tensor]:
    return [one.char_vectors for one in model.features(texts)]


def test_words_are_those_with_several_pieces_and_keep_their_vectors():
    model = made()
    assert model.vocabulary.words == [*tiny.WORDS, "未见"] and model.vocabulary.pieces == bert_our().vocabulary.pieces
    rows = WORDS.vectors[WORDS.rows(model.vocabulary.words)]
    np.testing.assert_array_equal(model.bert.adapter.words.weight.detach().numpy(), rows)
    assert made(n_words=3).vocabulary.words == tiny.WORDS[:3]


@pytest.mark.parametrize("after_layer", [1, 2])
@pytest.mark.parametrize("max_words", [1, 5])
@torch.no_grad()
def test_equals_a_literal_reading(after_layer, max_words):
    """One text, one piece and one word at a time."""
    model = made(after_layer=after_layer, max_words=max_words)
    bert, own = model.bert, model.bert.adapter
    plain = bert_our()
    for text in TEXTS:
        lattice = model.tokenizer.tokenize(text)
        batch = collate_tokens([plain.tokenizer.encode(text)])
        hidden, scores = bert.embeddings(batch), bert.positions(batch)
        for number, layer in enumerate(bert.layers, start=1):
            hidden = layer(hidden, scores)
            if number != after_layer:
                continue
            for piece in range(hidden.shape[1]):
                spans = zip(lattice.ids.tolist(), lattice.starts.tolist(), lattice.ends.tolist(), strict=True)
                words = [(e - s, -s, id) for id, s, e in spans if e - s > 1 and s <= piece - 1 < e]
                h, adapter = hidden[0, piece], own.adapter
                rows = [id - model.vocabulary.n_pieces for _, _, id in sorted(words, reverse=True)[:max_words]]
                values = [adapter.word_out(torch.tanh(adapter.word_in(own.words.weight[row]))) for row in rows]
                if values:
                    shares = torch.stack([adapter.bilinear(h) @ v for v in values]).softmax(0)
                    h = h + sum(share * v for share, v in zip(shares, values, strict=True))
                hidden[0, piece] = adapter.norm(h)
        found = bert.encode(collate_tokens([model.tokenizer.encode(text)]))
        at_pieces = [0, *(1 + np.flatnonzero(lattice.is_piece)).tolist(), lattice.n_tokens + 1]
        torch.testing.assert_close(found[0, at_pieces], hidden[0], atol=1e-6, rtol=1e-6)
        assert not found[0, [1 + k for k in np.flatnonzero(~lattice.is_piece)]].any()


@torch.no_grad()
def test_padding_rows_and_the_encoder_without_words():
    model = made()
    for text, together in zip(TEXTS, char_vectors(model), strict=True):
        torch.testing.assert_close(together, char_vectors(model, [text])[0], atol=1e-6, rtol=1e-6)
    batch = collate_tokens([model.tokenizer.encode(text) for text in TEXTS])
    rows = torch.tensor([[0, 3], [0, 1], [0, 1], [0, 2]])
    for after_layer in (1, 2):
        other = made(after_layer=after_layer).bert
        whole = other.encode(batch)
        torch.testing.assert_close(other.encode(batch, rows), whole.gather(1, rows[:, :, None].expand(-1, -1, 16)))
    nothing = made(random=False, residual="plain")
    for found, expected in zip(char_vectors(nothing), char_vectors(bert_our()), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    assert not torch.allclose(char_vectors(model)[0], char_vectors(nothing)[0], atol=1e-2)


@torch.no_grad()
def test_attention_is_that_among_characters():
    model = made()
    batch = collate_tokens([model.tokenizer.encode(text) for text in TEXTS])
    received = model.bert.attention_received(batch)
    assert received.shape == batch.ids.shape and not received[batch.starts < batch.ends].any()
    torch.testing.assert_close(received.sum(1), torch.ones(len(TEXTS)))


@torch.no_grad()
def test_attention_after_the_layer_is_that_of_characters_that_have_read_words():
    model = made(after_layer=1)
    bert, batch = model.bert, collate_tokens([model.tokenizer.encode(TEXTS[0])])
    split = bert.adapter.split(batch)
    hidden, scores = bert.embeddings(split.pieces), bert.positions(split.pieces)
    first, second = bert.layers
    expected = first.attention.probabilities(hidden, scores)[0]
    hidden = bert.adapter(first(hidden, scores), split, n_pieces=model.vocabulary.n_pieces)
    expected = torch.cat([expected, second.attention.probabilities(hidden, scores)[0]]).mean((0, 1))
    received = bert.attention_received(batch)[0]
    torch.testing.assert_close(received[batch.starts[0] == batch.ends[0]], expected)


def test_saved_and_loaded(tmp_path):
    model = made(no_word=True, after_layer=2)
    model.save(tmp_path / "model")
    again = PretrainedLatticeBert.from_pretrained(tmp_path / "model")
    assert again.bert.adapter.config == model.bert.adapter.config
    for found, expected in zip(char_vectors(again), char_vectors(model), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    features = LatticeBertFeatures.load(tmp_path / "model", tuned=True)
    assert features.n_layers == 0  # LEBERT would add a second adapter
    assert all(w.requires_grad for w in features.bert.adapter.parameters())
    batch = tiny.model().encode(TEXTS)[0]
    torch.testing.assert_close(features.eval()(batch)[0, :7], char_vectors(model)[0])


def test_by_command(tmp_path, capsys):
    bert_our().save(tmp_path / "bert_our")
    np.savez(
        tmp_path / "word.npz", words="\n".join(WORDS.words), vectors=WORDS.vectors, counts=np.ones(len(WORDS), int)
    )
    command = [
        "lattice-bert",
        "pretrain",
        "adapter",
        str(tmp_path / "bert_our"),
        "--vectors",
        str(tmp_path / "word.npz"),
    ]
    assert main([*command, "--output", str(tmp_path / "model"), "--after-layer", "2", "--max-words", "3"]) == 0
    assert f"{len(tiny.WORDS) + 1} words of width 6, read after layer 2" in capsys.readouterr().out
    config = PretrainedLatticeBert.from_pretrained(tmp_path / "model").bert.adapter.config
    assert config == WordAdapterConfig(n_words=len(tiny.WORDS) + 1, word_width=6, after_layer=2, max_words=3)
    assert main([*command, "--output", str(tmp_path / "other"), "--after-layer", "3"]) != 0
    assert "after_layer is 3, expected from 1 to 2" in capsys.readouterr().err


def test_its_words_are_counted_as_parameters_not_as_tokens_of_the_layers(tmp_path, capsys):
    model = made()
    model.save(tmp_path / "model")
    assert main(["lattice-bert", "pretrain", "describe", "--model", str(tmp_path / "model"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["n_tokens"] == facts["n_chars"] == 128
    assert facts["parameters"]["word adapter"] == sum(p.numel() for p in model.bert.adapter.parameters())
    assert facts["n_parameters"] == sum(facts["parameters"].values())


def test_models_that_cannot_have_one():
    config = WordAdapterConfig(n_words=9, word_width=6)
    with pytest.raises(ModelError, match=r"reads 23 words already; expected one of characters alone"):
        add_adapter(tiny_lattice_bert.pretrained(), WORDS, config)
    with pytest.raises(ModelError, match="after_layer is 0, expected from 1 to 2"):
        add_adapter(bert_our(), WORDS, replace(config, after_layer=0))
    single = VectorTable(["好", "A"], np.ones((2, 6), np.float32))
    with pytest.raises(ModelError, match="none of the 2 words with vectors can be a token"):
        add_adapter(bert_our(), single, config)
    model = made()
    batch = collate_tokens([model.tokenizer.encode("好")])
    with pytest.raises(ValueError, match="a second change"):
        model.bert.encode(batch, change=(1, lambda hidden: hidden))


def test_words_are_hidden_nowhere_on_disk_of_a_model_without_adapter(tmp_path: Path):
    """Folders of models without one are as they were."""
    bert_our().save(tmp_path / "model")
    assert "adapter" not in (tmp_path / "model" / "config.json").read_text(encoding="utf-8")
