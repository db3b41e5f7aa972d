"""The kinds of folders and of recipes of Lattice-BERT, by name."""

from __future__ import annotations

PRETRAINED, TUNED = "cige pre-trained model", "cige tuned model"
PRETRAINING_DATA, SHARD, JOINT_VOCABULARY = "cige pre-training data", "cige pre-training shard", "joint vocabulary"
PRETRAIN, FINETUNE = "pretrain", "finetune"  # kinds of recipes
