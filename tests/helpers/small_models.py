"""Every architecture, small, with no dropout, and other forms of some."""

from __future__ import annotations

import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import tiny
from tiny_bert import write_bert

from cige.data.batch import LatticeBatch, collate
from cige.data.sentence import Sentence
from cige.data.tags import spans_to_tags
from cige.models.flat import RELEASED
from cige.models.lebert import RELEASED as RELEASED_LEBERT
from cige.models.lr_cnn_config import EQUATIONS
from cige.models.model import LatticeModel
from cige.models.nflat import RELEASED as RELEASED_NFLAT
from cige.models.registry import ARCHITECTURES, architecture
from cige.nn.bert import BertFeatures

NO_DROPOUT = {"embed_dropout_prob": 0.0, "word_dropout_prob": 0.0, "output_dropout_prob": 0.0}
SMALL: dict[str, dict] = {  # settings beside those of NO_DROPOUT: small widths, every dropout of the model's own off
    "flat": {"n_heads": 4, "head_width": 8, "ff_width": 64, "ff_dropout_prob": 0.0},
    "soft_lexicon": {"lstm_width": 32},
    "dcsan": {
        "width": 32,
        "n_cross_heads": 4,
        "n_self_heads": 4,
        "ff_width": 64,
        "cross_dropout_prob": 0.0,
        "fusion_dropout_prob": 0.0,
        "attention_dropout_prob": 0.0,
        "ff_dropout_prob": 0.0,
    },
    "cgn": {"lstm_width": 24, "head_width": 6, "graph_width": 16, "lstm_dropout_prob": 0.0, "graph_dropout_prob": 0.0},
    "bert_crf": {"bert": "made on the spot", "bert_tuned": False, "hidden_widths": (32,), "hidden_dropout_prob": 0.0},
    "lebert": {"bert": "made on the spot", "bert_tuned": False, "adapter_dropout_prob": 0.0},
    "bilstm_crf": {"lstm_width": 32},
    "lattice_lstm": {"lstm_width": 32},
    "lgn": {
        "width": 12,
        "n_steps": 2,
        "n_heads": 2,
        "head_width": 6,
        "place_width": 4,
        "attention_dropout_prob": 0.0,
        "cell_dropout_prob": 0.0,
    },
    "lr_cnn": {
        "width": 16,
        "n_layers": 3,
        "position_width": 6,
        "state_dropout_prob": 0.0,
        "attention_dropout_prob": 0.0,
    },
    "multi_digraph": {"state_width": 12, "lstm_width": 16, "n_layers": 1},
    "plt": {
        "n_heads": 2,
        "head_width": 8,
        "ff_width": 24,
        "n_layers": 1,
        "gru_width": 16,
        "attention_dropout_prob": 0.0,
        "ff_dropout_prob": 0.0,
    },
    "nflat": {
        "n_heads": 2,
        "head_width": 12,
        "n_self_heads": 2,
        "ff_width": 48,
        "ff_dropout_prob": 0.0,
        "attention_dropout_prob": 0.0,
    },
    "tener": {"n_heads": 2, "head_width": 12, "ff_width": 48, "ff_dropout_prob": 0.0, "attention_dropout_prob": 0.0},
}
WITHOUT_WORDS = {"bert_crf", "bert_crf, components", "bilstm_crf", "tener"}  # models that read no lexicon
TEXTS = ["李明在北京市长江大桥。", "重庆人和药店", "好", "今天天气很好的中国银行经理请了欧阳修南京市长江大桥说话"]


VARIANTS = {  # other forms of a model: (architecture, settings)
    "flat, over a BERT": ("flat", {"bert": "made on the spot"}),
    "flat, biased": ("flat", {"position_score": "bias"}),
    "flat, released": ("flat", RELEASED),
    "nflat, released": ("nflat", RELEASED_NFLAT),
    "nflat, characters first": ("nflat", {"order": "characters_first"}),
    "lebert, released": ("lebert", RELEASED_LEBERT),
    "lr_cnn, equations": ("lr_cnn", {**EQUATIONS, "long_words": True}),
    "flat, components": ("flat", {"components": tiny.COMPONENTS}),
    "soft_lexicon, components": ("soft_lexicon", {"components": tiny.COMPONENTS}),
    "bert_crf, components": ("bert_crf", {"components": tiny.COMPONENTS}),
    "lebert, components": ("lebert", {"components": tiny.COMPONENTS}),
}


EVERY = [*sorted(name for name in ARCHITECTURES if name in SMALL), *VARIANTS]


def made(name: str, **settings: object) -> LatticeModel:
    if name in VARIANTS:
        name, variant = VARIANTS[name]
        settings = {**variant, **settings}
    config = architecture(name).config_class()(**{**NO_DROPOUT, **SMALL[name], **settings})
    features = None
    if config.bert is not None:
        features = deepcopy(read_bert(config.bert_tuned))
    return tiny.model(config=config, architecture=name, features=features)


@cache
def written_bert() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()
    write_bert(Path(folder.name))
    return folder


@cache
def read_bert(tuned: bool) -> BertFeatures:
    return BertFeatures.load(Path(written_bert().name), tuned=tuned)


def labelled_batch(model: LatticeModel, sentences: list[Sentence]) -> LatticeBatch:
    ids = {tag: k for k, tag in enumerate(model.tagger.tags)}
    gold = [np.array([ids[t] for t in spans_to_tags(len(s.text), s.spans, model.scheme)]) for s in sentences]
    return collate([model.vocabulary.encode(x) for x in model.lattices([s.text for s in sentences])], gold)
