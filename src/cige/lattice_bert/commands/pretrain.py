"""Pre-train a Lattice-BERT: build its vocabulary and data, train it, describe it.

Examples:
  cige lattice-bert pretrain vocab corpus.txt.xz vocabulary --pieces vocab.txt
  cige lattice-bert pretrain data corpus.txt.xz --vocab vocabulary --output data
  cige lattice-bert pretrain run pretrain/tiny --data data --output runs/tiny
  cige lattice-bert pretrain table runs/tiny runs/tiny_bert_our
  cige lattice-bert pretrain adapter runs/tiny_bert_our/model --vectors word.npz --output runs/tiny_adapter
  cige lattice-bert pretrain describe --model runs/tiny/model
  cige lattice-bert pretrain explain --model runs/tiny/model --tuned runs/ner/model "研究生活很充实"
"""

from __future__ import annotations

import argparse

from cige.lattice_bert.commands import add_verb

# Each sub-verb is a file pretrain_<sub-verb>.py here, with its own docstring, `add_arguments(parser)` and `run`.
SUB_VERBS = {
    "vocab": "word pieces and the most frequent words of a corpus as one vocabulary",
    "data": "a corpus as shards of tokenised text",
    "run": "pre-train with a recipe",
    "table": "the results of finished runs on held-out text, side by side",
    "adapter": "add a word adapter to a BERT-our, as an alternative to words at its input",
    "describe": "the size of a model and its cost per character, or statistics of data",
    "explain": "the attention that each lattice token of a text receives, before and after fine-tuning",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="|".join(SUB_VERBS), required=True)
    for name, what in SUB_VERBS.items():
        add_verb(verbs, name, what, f"pretrain_{name}")
