"""A data folder small enough to train on within a test run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tiny

from cige.data import write_sentences
from cige.training.recipe import Recipe, recipe_from_dict

N_TRAIN, N_DEV = 64, 24


def write_data_folder(folder: Path) -> Path:
    """ner/tiny/{train,dev}.bmes, vectors/{char,bichar.min20,word}.npz and lexicon/words.txt, all made up."""
    write_sentences(_made(folder / "ner/tiny/train.bmes"), tiny.sentences(N_TRAIN, seed=1))
    write_sentences(_made(folder / "ner/tiny/dev.bmes"), tiny.sentences(N_DEV, seed=2))
    known = tiny.sentences(N_TRAIN, seed=1)
    chars = sorted({c for sentence in known for c in sentence.text})
    bigrams = sorted({s.text[i : i + 2] for s in known for i in range(len(s.text) - 1)})
    for name, words, width in (("char", chars, 12), ("bichar.min20", bigrams, 10), ("word", tiny.WORDS, 8)):
        table = tiny.random_table(words, width, seed=len(name))
        path = _made(folder / f"vectors/{name}.npz")
        np.savez(path, words="\n".join(words), vectors=table.vectors, counts=np.ones(len(words), np.int64))
    _made(folder / "lexicon/words.txt").write_text("\n".join(tiny.WORDS), encoding="utf-8")
    return folder


def tiny_recipe(**settings: object) -> Recipe:
    """A recipe for `write_data_folder`: a small network, 3 epochs of 7 steps.

    Args:
        settings: those of section `training` by their names, those of others as `optimizer__learning_rate=0.02`, and
            those of the recipe itself as `recipe__head="crf"`.
    """
    recipe: dict[str, Any] = {
        "name": "tiny",
        "data": {"train": "ner/tiny/train.bmes", "dev": "ner/tiny/dev.bmes"},
        "model": {
            "n_heads": 4,
            "head_width": 8,
            "ff_width": 64,
            "embed_dropout_prob": 0.2,
            "word_dropout_prob": 0.2,
            "output_dropout_prob": 0.1,
        },
        "training": {"n_epochs": 3},
        "batches": {"batch_size": 10},
        "optimizer": {"learning_rate": 0.01},
    }
    for key, value in settings.items():
        section, _, name = key.rpartition("__")
        if section == "recipe":
            recipe[name] = value
        else:
            recipe.setdefault(section or "training", {})[name] = value
    return recipe_from_dict(recipe)


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def over_bert(bert: str, *, tuned: bool) -> Recipe:
    """One epoch over a BERT, or over what a recipe may name in its place."""
    plain = tiny_recipe(n_epochs=1, batches__batch_size=40)
    return replace(plain, model=replace(plain.model, bert=bert, bert_tuned=tuned))
