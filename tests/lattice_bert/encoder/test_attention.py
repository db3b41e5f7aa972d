"""Attention that tokens get, by several models; and the Lattice-BERT inside whatever was tuned on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from tiny_lattice_bert import N_POSITIONS, pretrained

from cige.errors import ModelError
from cige.lattice_bert.encoder.attention import attended_tokens, read_encoder
from cige.lattice_bert.encoder.pretrained import LatticeBertFeatures
from cige.lattice_bert.encoder.token_batch import collate_tokens

TEXT = "南京市长江大桥"


def test_shares_are_those_of_the_network_without_special_tokens():
    models = {"before": pretrained(), "after": pretrained(seed=1)}
    found = attended_tokens(models, TEXT)
    assert found.names == ("before", "after") and found.shares.shape == (2, 13)
    assert [token for _, _, token in found.tokens][:5] == ["南", "京", "南京", "市", "南京市"]
    for shares, model in zip(found.shares, models.values(), strict=True):
        bert = model.bert
        batch = collate_tokens([model.tokenizer.encode(TEXT)])
        with torch.no_grad():
            scores, hidden, total = bert.positions(batch), bert.embeddings(batch), np.zeros(15)
            for layer in bert.layers:
                weights = layer.attention.probabilities(hidden, scores)[0]  # [H, N, N]
                total += weights.mean((0, 1)).numpy()
                hidden = layer(hidden, scores)
        np.testing.assert_allclose(shares, total[1:-1] / len(bert.layers), rtol=1e-5)
    assert abs(found.shares[0] - found.shares[1]).max() > 1e-3
    rows = found.to_dict()["tokens"]
    assert rows[2]["token"] == "南京" and (rows[2]["start"], rows[2]["end"]) == (0, 2)
    assert rows[2]["share"]["after"] == pytest.approx(float(found.shares[1, 2]))


def test_dropout_is_off_and_the_mode_stays():
    model = pretrained()
    model.bert.train()
    first, second = (attended_tokens({"model": model}, TEXT).shares for _ in range(2))
    assert (first == second).all() and model.bert.training


def test_what_cannot_be_compared_or_read():
    with pytest.raises(ModelError, match="a and b: different vocabularies"):
        attended_tokens({"a": pretrained(), "b": pretrained(words=["北京"])}, TEXT)
    with pytest.raises(ModelError, match=f"a text of 30 pieces; the model has positions for {N_POSITIONS - 2}"):
        attended_tokens({"a": pretrained()}, "京" * 30)
    with pytest.raises(ModelError, match="no token in it"):
        attended_tokens({"a": pretrained()}, "\t")


def test_the_encoder_of_a_pretrained_model_and_of_a_tagger(tmp_path):
    made = pretrained()
    made.save(tmp_path / "pretrained")
    config = replace(tiny.CONFIG, bert=str(tmp_path / "pretrained"))
    features = LatticeBertFeatures(pretrained=pretrained(seed=2), tuned=False)
    tiny.model(config=config, features=features).save(tmp_path / "tagger")
    for name, seed in (("pretrained", 0), ("tagger", 2)):
        expected = attended_tokens({"": pretrained(seed=seed)}, TEXT).shares
        found = attended_tokens({"": read_encoder(tmp_path / name)}, TEXT).shares
        np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_encoder_of_a_model_without_one(tmp_path):
    tiny.model().save(tmp_path / "flat")
    with pytest.raises(ModelError, match="cige pre-trained model"):
        read_encoder(tmp_path / "flat")
