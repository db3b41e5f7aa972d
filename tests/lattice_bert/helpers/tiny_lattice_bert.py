"""A random Lattice-BERT small enough to write, train and run within a test."""

from __future__ import annotations

from typing import Any

import tiny
import torch

from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.network import LatticeBert, LatticeBertConfig
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHARS = sorted(set("".join(sentence.text for sentence in tiny.sentences(60)) + "".join(tiny.WORDS)))
PIECES = list(dict.fromkeys([*SPECIAL, *CHARS, "2020", "年", "ab", "##c"]))
N_POSITIONS = 24


def vocabulary(*, words: list[str] | None = None) -> JointVocabulary:
    return JointVocabulary.build(PIECES, tiny.WORDS if words is None else words)


def pretrained(*, heads: bool = True, seed: int = 0, words: list[str] | None = None, **settings: Any):
    """A PretrainedLatticeBert of 2 layers of width 16, its weights so large that words matter."""
    joint = vocabulary(words=words)
    small = {"n_layers": 2, "n_heads": 2, "width": 16, "embedding_width": 8, "position_width": 4}
    config = LatticeBertConfig(n_tokens=len(joint), **(small | {"max_positions": N_POSITIONS} | settings))
    torch.manual_seed(seed)
    network = LatticeBertForPreTraining(config) if heads else LatticeBert(config)
    for parameter in network.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return PretrainedLatticeBert(network=network.eval(), vocabulary=joint, facts={"n_steps": 7})
