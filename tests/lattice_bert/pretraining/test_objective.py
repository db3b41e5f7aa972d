"""Figures of pre-training: means of what was asked, as plain data, and what nothing was asked of."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import tiny_corpus
import torch

from cige.engine.history import Record, RunState
from cige.json_text import to_json
from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.network import LatticeBertConfig
from cige.lattice_bert.pretraining.data import open_data
from cige.lattice_bert.pretraining.dataset import InstanceConfig, InstanceSet, TokenIds
from cige.lattice_bert.pretraining.objective import evaluate, figures, per_cent, shown_loss
from cige.lattice_bert.pretraining.packing import Room


def test_one_small_document_may_have_no_token_to_predict(tmp_path: Path) -> None:
    text = "北京大学生活\n\n研究生活很充实。\n" * 3
    data = open_data(tiny_corpus.data_folder(tmp_path / "data", text=text, held_out=2))
    torch.manual_seed(0)
    model = LatticeBertForPreTraining(LatticeBertConfig(n_tokens=len(data.vocabulary), n_layers=1, n_heads=2, width=16))
    ids = TokenIds.of(data.vocabulary, use_words=True)
    asked = []
    for seed in range(40):
        instances = InstanceSet(data.held_out, config=InstanceConfig(), ids=ids, room=Room(128, 256), seed=seed)
        found = evaluate(model, instances, n_most=1, micro_batch_size=8, n_pieces=data.vocabulary.n_pieces)
        assert ("mlm_accuracy" in found) == ("mlm_loss" in found) and found["n_instances"] == 1
        asked.append("mlm_accuracy" in found)
    assert any(asked) and not all(asked)


def test_what_was_not_asked_is_shown_as_a_dash() -> None:
    assert (per_cent(None), shown_loss(None)) == ("-", "-")
    assert (per_cent(0.123), shown_loss(1.2345)) == ("12.3%", "1.234")


def test_means() -> None:
    found = figures([6.0, 4.0, 1.0, 3.0, 2.0, 2.0, 90.0])
    assert found == pytest.approx(
        {"mlm_loss": 1.5, "mlm_accuracy": 0.25, "sentence_loss": 1.5, "sentence_accuracy": 1.0, "n_tokens": 90.0}
    )


def test_what_was_not_asked_is_left_out() -> None:
    found = figures([6.0, 4.0, 1.0, 0.0, 0.0, 0.0, 90.0])
    assert set(found) == {"mlm_loss", "mlm_accuracy", "n_tokens"}
    assert (per_cent(found["mlm_accuracy"]), per_cent(found.get("sentence_accuracy"))) == ("25.0%", "-")
    state = RunState(records=[Record(1, 0, 0.1, found, scores=found)])
    assert RunState.from_dict(json.loads(to_json(asdict(state)))) == state
