"""BERT features: a vector for each character, whatever the text, changed between layers, and kept."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tiny_bert import CHINESE, N_POSITIONS, TEXTS, VOCABULARY, write_bert

from cige.data.batch import LatticeBatch, collate
from cige.data.vocabulary import EncodedLattice
from cige.errors import ModelError
from cige.nn.bert import BertFeatures
from cige.nn.char_features import BetweenLayers
from cige.text.windows import overlapping_windows

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def features(bert) -> BertFeatures:
    return BertFeatures.load(bert, tuned=False).eval()


def batch_of(texts: list[str]) -> LatticeBatch:
    nothing = np.zeros(0, np.int64)
    return collate([EncodedLattice(np.ones(len(t), int), np.ones(len(t), int), *[nothing] * 5, t) for t in texts])


def read(features: BertFeatures, texts: list[str]) -> torch.Tensor:
    with torch.no_grad():
        return features(batch_of(texts))


def whole(bert: Path) -> Callable[[list[int]], torch.Tensor]:
    """transformers' own model on token ids: float[tokens, 16]."""
    model = transformers.AutoModel.from_pretrained(bert).eval()
    return lambda ids: model(input_ids=torch.tensor([ids])).last_hidden_state[0].detach()


# characters and tokens


def test_each_character_is_what_the_tokenizer_makes_of_it_alone(bert, features):
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    text = "李A z龘\u3000\té\x00\u200b𠮷😀hello的2"
    alone = [tokenizer.tokenize(c) for c in text]
    expected = [tokenizer.convert_tokens_to_ids(t[0]) if len(t) == 1 else tokenizer.unk_token_id for t in alone]
    assert features.token_ids(text) == expected
    unknown = [c for c, token in zip(text, expected, strict=True) if token == tokenizer.unk_token_id]
    assert unknown == list(" 龘\u3000\t\x00\u200b😀")
    assert features.token_ids("AÉ") == features.token_ids("ae")  # lower case, as this BERT was trained
    assert features.token_ids("hello") == [VOCABULARY.index(c) for c in "hello"]  # never merged


def test_a_thread_that_reads_a_new_character_meanwhile_has_its_token_too(bert, monkeypatch):
    own, found = BertFeatures.load(bert, tuned=False), []
    own._ids.clear()
    tokenizer = own.tokenizer

    def interrupted(*args, **options):
        monkeypatch.setattr(own, "tokenizer", tokenizer)
        other = threading.Thread(target=lambda: found.append(own.token_ids("李z")))
        other.start()
        other.join()
        return tokenizer(*args, **options)

    interrupted.unk_token_id = tokenizer.unk_token_id
    monkeypatch.setattr(own, "tokenizer", interrupted)
    expected = [VOCABULARY.index("李"), VOCABULARY.index("z")]
    assert own.token_ids("李z") == expected and found == [expected]


def test_a_cased_bert_keeps_case(tmp_path):
    cased = BertFeatures.load(write_bert(tmp_path / "cased", lower_case=False), tuned=False)
    assert cased.token_ids("aA李") == [VOCABULARY.index("a"), VOCABULARY.index("[UNK]"), VOCABULARY.index("李")]


def test_chinese_text_is_tokenized_as_the_tokenizer_does_it(bert, features):
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    for sentence in tiny.sentences(30):
        assert features.token_ids(sentence.text) == tokenizer(sentence.text, add_special_tokens=False)["input_ids"]


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_one_vector_a_character_for_any_text(features, text):
    assert len(features.token_ids(text)) == len(text)
    out = read(features, [text])
    assert out.shape == (1, max(1, len(text)), 16) and out.isfinite().all()


def test_features_are_the_last_hidden_states_without_cls_and_sep(bert, features):
    expected = whole(bert)
    out = read(features, TEXTS)
    assert out.shape == (len(TEXTS), max(map(len, TEXTS)), 16) and out.dtype == torch.float32
    for row, text in zip(out, TEXTS, strict=True):
        hidden = expected([2, *features.token_ids(text), 3])
        torch.testing.assert_close(row[: len(text)], hidden[1:-1], atol=1e-5, rtol=0)
        assert not row[len(text) :].any()


def test_a_text_alone_and_in_a_batch_is_read_alike(features):
    texts = [*TEXTS, "北京" * 30]
    for row, text in zip(read(features, texts), texts, strict=True):
        torch.testing.assert_close(row[: len(text)], read(features, [text])[0][: len(text)], atol=1e-5, rtol=0)


def test_nothing_to_read(features):
    assert read(features, ["", ""]).tolist() == [[[0.0] * 16]] * 2


# long texts


def test_long_texts_are_read_in_windows_and_nothing_is_cut(bert, features):
    expected = whole(bert)
    n_at_once = N_POSITIONS - 2
    assert features.n_chars_at_once == n_at_once
    text = "".join(s.text for s in tiny.sentences(12))
    for n in (n_at_once, n_at_once + 1, 2 * n_at_once, len(text)):
        out = read(features, [text[:n]])[0]
        assert out.shape == (n, 16) and out.abs().sum(1).min() > 0
        for window in overlapping_windows(n, n_at_once):
            start, end, first, last = window.start, window.end, window.core_start, window.core_end
            hidden = expected([2, *features.token_ids(text[start:end]), 3])[1:-1]
            torch.testing.assert_close(out[first:last], hidden[first - start : last - start], atol=1e-5, rtol=0)


def test_the_tokenizers_own_limit_counts_too(tmp_path):
    folder = write_bert(tmp_path / "short", n_positions=64)
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"model_max_length": 32}), encoding="utf-8")
    assert BertFeatures.load(folder, tuned=False).n_chars_at_once == 30


# frozen and tuned


def test_a_frozen_bert_takes_no_gradient_and_has_no_dropout(bert):
    made = BertFeatures.load(bert, tuned=False)
    assert not any(p.requires_grad for p in made.parameters())
    made.train()
    assert made.training and not made.bert.training
    batch = batch_of(TEXTS)
    out = made(batch)
    assert not out.requires_grad and torch.equal(out, made(batch))
    assert torch.equal(out, made.eval()(batch))


def test_a_tuned_bert_takes_gradients_everywhere_and_has_dropout(bert):
    made = BertFeatures.load(bert, tuned=True)
    batch = batch_of(["北京" * 20, *TEXTS])
    made.train()
    assert made.bert.training and not torch.equal(made(batch), made(batch))
    direction = torch.randn(16, generator=torch.Generator().manual_seed(0))  # normalised rows add up to a constant
    (made(batch) * direction).sum().backward()
    dead = [name for name, p in made.named_parameters() if p.grad is None]
    assert dead == []
    made.eval()
    assert torch.equal(made(batch), made(batch))


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
def test_only_a_tuned_bert_keeps_what_gradients_need(bert, tuned, wanted):
    made, kept = BertFeatures.load(bert, tuned=tuned), []
    made.bert.embeddings.register_forward_hook(lambda *_: kept.append(torch.is_grad_enabled()))
    with torch.set_grad_enabled(wanted):
        found = made(batch_of(TEXTS))
    assert kept == [tuned and wanted] and found.requires_grad == (tuned and wanted)


@pytest.mark.parametrize("pooler", [True, False])
def test_a_pooler_is_neither_kept_nor_missed(tmp_path, pooler):
    made = BertFeatures.load(write_bert(tmp_path / "bert", pooler=pooler), tuned=True)
    assert not any("pooler" in name for name in made.state_dict())


# what cannot be used


def test_no_such_bert(tmp_path):
    with pytest.raises(ModelError, match=r"nowhere: not a BERT that can be read .*config.json, weights and vocabulary"):
        BertFeatures.load(tmp_path / "nowhere", tuned=False, local_only=True)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_bert(tmp_path, name, damage):
    path = write_bert(tmp_path / "bert") / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ModelError, match=r"bert: not a BERT that can be read"):
        BertFeatures.load(tmp_path / "bert", tuned=False)


def test_a_bert_without_its_vocabulary(tmp_path):
    folder = write_bert(tmp_path / "bert")
    for path in (*folder.glob("vocab*"), *folder.glob("tokenizer*")):
        path.unlink()
    with pytest.raises(ModelError, match=r"vocabulary"):
        BertFeatures.load(folder, tuned=False)


def test_a_bert_with_weights_missing(tmp_path):
    path = write_bert(tmp_path / "bert") / "model.safetensors"
    kept = {k: v for k, v in load_file(path).items() if "attention.self.query" not in k}
    save_file(kept, path, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"bert: 2 weights of its network are missing, encoder.layer.0.attention"):
        BertFeatures.load(tmp_path / "bert", tuned=False)


def test_a_vocabulary_larger_than_the_bert(bert):
    made = transformers.AutoModel.from_pretrained(bert)
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    tokenizer.add_tokens(["龘"])
    with pytest.raises(ModelError, match=rf"{len(VOCABULARY) + 1} tokens, more than the BERT"):
        BertFeatures(bert=made, tokenizer=tokenizer, tuned=False)


def test_without_transformers_it_says_what_to_install(bert, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModelError, match=r'pip install .*\[bert\]"'):
        BertFeatures.load(bert, tuned=False)


# between its layers


@pytest.mark.parametrize("after_layer", [1, 2])
@torch.no_grad()
def test_a_change_between_layers_knows_the_character_of_each_vector(tmp_path, after_layer):
    """Also in windows of a long text; the change of a layer that is not the last is read by the next one."""
    folder = write_bert(tmp_path / "bert", n_layers=2)
    features = BertFeatures.load(folder, tuned=False).eval()
    texts = [*TEXTS, "".join(CHINESE[:50])]
    batch = batch_of(texts)
    n_core = torch.zeros(batch.chars.shape)

    def change(hidden, places):
        sentence = places.sentences[:, None].expand_as(places.chars)
        assert hidden.shape[:2] == places.chars.shape == places.core.shape and (places.chars[:, 0] == -1).all()
        n_core.index_put_((sentence[places.core], places.chars[places.core]), torch.ones(()), accumulate=True)
        hidden = hidden.clone()
        hidden[:, :, 0], hidden[:, :, 1] = places.chars, sentence
        return hidden

    found = features(batch, BetweenLayers(after_layer, change))
    assert torch.equal(n_core, batch.char_mask.float())
    if after_layer == 2:
        for row, text in enumerate(texts):
            assert found[row, : len(text), :2].tolist() == [[t, row] for t in range(len(text))]
    else:
        assert not torch.allclose(found, features(batch))
        unchanged = features(batch, BetweenLayers(1, lambda hidden, places: hidden))
        torch.testing.assert_close(unchanged, features(batch))


def test_a_fixed_bert_passes_gradients_to_a_change_alone(bert):
    features = BertFeatures.load(bert, tuned=False).train()
    assert features.n_layers == 1 and not features.bert.training
    scale = torch.ones((), requires_grad=True)
    features(batch_of(TEXTS), BetweenLayers(1, lambda hidden, places: hidden * scale)).sum().backward()
    assert scale.grad is not None and all(w.grad is None for w in features.parameters())
    assert not features(batch_of(TEXTS)).requires_grad


# vectors that are kept


def count_reads(features: BertFeatures, monkeypatch) -> list[list[str]]:
    """The texts of each call that reads with the network, filled as it happens."""
    calls, read_now = [], features.read
    monkeypatch.setattr(
        features, "read", lambda texts, device, between: calls.append(list(texts)) or read_now(texts, device, between)
    )
    return calls


def test_kept_vectors_are_those_of_the_text_and_are_read_once(bert, features, monkeypatch):
    kept = BertFeatures.load(bert, tuned=False).eval()
    kept.remember(TEXTS, n_bytes=1 << 20)
    calls = count_reads(kept, monkeypatch)
    for texts in (TEXTS, TEXTS[::-1], [TEXTS[0], "李明", TEXTS[0], "北京"]):
        torch.testing.assert_close(read(kept, texts), read(features, texts))
    assert calls == [*([text] for text in TEXTS), ["李明", "北京"]]
    assert torch.equal(read(kept, [TEXTS[0]])[0], read(kept, TEXTS)[0, : len(TEXTS[0])]), "whatever it is read with"


def test_vectors_of_two_precisions_are_kept_apart(bert):
    kept = BertFeatures.load(bert, tuned=False).eval()
    kept.remember(TEXTS, n_bytes=1 << 20)
    exact = read(kept, TEXTS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = read(kept, TEXTS)
    assert not torch.equal(exact, rounded) and torch.equal(read(kept, TEXTS), exact)


def test_all_vectors_are_kept_or_none(bert, features, monkeypatch):
    kept = BertFeatures.load(bert, tuned=False).eval()
    kept.remember(["李明在北京", "罗氏公司"], n_bytes=4 * 16 * len("李明在北京罗氏公司") - 1)
    calls = count_reads(kept, monkeypatch)
    for _ in range(2):
        read(kept, ["李明在北京", "罗氏公司"])
    assert calls == [["李明在北京", "罗氏公司"]] * 2


def test_copies_keep_no_vectors(bert, monkeypatch):
    kept = BertFeatures.load(bert, tuned=False).eval()
    kept.remember(TEXTS, n_bytes=1 << 20)
    expected = read(kept, TEXTS)
    copy = deepcopy(kept)
    calls = count_reads(copy, monkeypatch)
    torch.testing.assert_close(read(copy, TEXTS), expected)
    assert calls == [TEXTS]


def test_vectors_that_change_are_not_kept(bert):
    with pytest.raises(ValueError, match="fine-tuned change"):
        BertFeatures.load(bert, tuned=True).remember(TEXTS, n_bytes=1 << 20)


def test_a_change_between_layers_is_never_answered_from_kept_vectors(bert):
    kept = BertFeatures.load(bert, tuned=False).eval()
    kept.remember(TEXTS, n_bytes=1 << 20)
    plain = read(kept, TEXTS)
    changed = kept(batch_of(TEXTS), BetweenLayers(1, lambda hidden, places: hidden + 1))
    assert not torch.allclose(plain[0], changed[0])
