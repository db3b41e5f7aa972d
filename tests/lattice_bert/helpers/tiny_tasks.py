"""A random Lattice-BERT, and files of tasks, small enough to tune on within a test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.network import LatticeBert, LatticeBertConfig
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.tasks.config import TuningConfig
from cige.lattice_bert.tasks.items import Room
from cige.lattice_bert.tasks.kinds import KINDS
from cige.lattice_bert.tasks.tuned import TunedModel, TunedNetwork
from cige.recipes.strict import changed

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["研究", "研究生", "生活", "北京", "大学", "北京大学", "学生", "今天", "天气", "下雨", "小明", "上海"]
CHARS = sorted({char for word in WORDS for char in word} | set("，。？我他在去有不是的很好坏哪里谁_[]"))
PIECES = [*SPECIAL, *CHARS, *"0123456789", "ai", "##b", "a", "2008"]
QUICK = changed(
    TuningConfig(max_pieces=40),
    {"training.n_epochs": 2, "batches.batch_size": 4, "optimizer.learning_rate": 5e-3, "schedule.warmup": "10%"},
)


def vocabulary() -> JointVocabulary:
    return JointVocabulary.build(PIECES, WORDS)


def pretrained(
    *, max_positions: int = 48, seed: int = 0, dropout_prob: float = 0.1, words: list[str] | None = None
) -> PretrainedLatticeBert:
    """A model of two layers that reads WORDS, or others."""
    torch.manual_seed(seed)
    tokens = JointVocabulary.build(PIECES, WORDS if words is None else words)
    config = LatticeBertConfig(
        n_tokens=len(tokens),
        n_layers=2,
        n_heads=2,
        width=32,
        embedding_width=16,
        position_width=8,
        max_positions=max_positions,
        dropout_prob=dropout_prob,
        attention_dropout_prob=dropout_prob,
    )
    bert = LatticeBert(config)
    with torch.no_grad():  # so that texts differ from the first step on
        for parameter in bert.parameters():
            if parameter.ndim > 1:
                parameter *= 5
    return PretrainedLatticeBert(bert, tokens)


def tuned(
    kind: str, examples: list[Any], *, max_pieces: int = 40, seed: int = 0, dropout_prob: float = 0.1, **settings: Any
) -> TunedModel:
    """An untrained model of a kind of task."""
    encoder = pretrained(max_positions=max(48, max_pieces), seed=seed, dropout_prob=dropout_prob)
    head = KINDS[kind].head(width=32, dropout_prob=dropout_prob, **(KINDS[kind].settings(examples) | settings))
    network = TunedNetwork(encoder.bert, head)
    return TunedModel(network, encoder, "tiny", kind, room=Room(None, max_pieces))


def write_lines(path: Path, records: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def pair_records(n: int) -> list[dict[str, Any]]:
    """AFQMC: label 1 where the second text is the first one's beginning."""
    texts = ["研究生生活很好", "北京大学的学生", "今天天气不好", "他在北京", "我去大学", "小明是研究生"]
    records = []
    for k in range(n):
        text = texts[k % len(texts)]
        other = text[:2] if k % 2 else texts[(k + 3) % len(texts)][:2]
        records.append({"sentence1": text, "sentence2": other, "label": str(k % 2)})
    return records


def pair_folder(folder: Path, *, n_train: int = 12, n_dev: int = 6) -> Path:
    """folder/afqmc with train, dev and an unlabelled test file; returns `folder`."""
    write_lines(folder / "afqmc" / "train.json", pair_records(n_train))
    write_lines(folder / "afqmc" / "dev.json", pair_records(n_dev))
    test = [{"id": k, "sentence1": "今天", "sentence2": "天气"} for k in range(3)]
    write_lines(folder / "afqmc" / "test.json", test)
    return folder
