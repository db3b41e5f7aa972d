"""The mean of the weights of several trained models, which is often as good as the best of them or better.

Wortsman et al.: "Model soups: averaging weights of multiple fine-tuned models improves accuracy without increasing
inference time", ICML 2022. This is the paper's uniform soup. It works for models that were fine-tuned from the same
model, since their weights are then close to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cige.data.components import ComponentTable
from cige.errors import ModelError
from cige.models.build import build_network
from cige.models.model import LatticeModel
from cige.nn.embeddings import SplitEmbedding


def mean_model(models: Sequence[LatticeModel]) -> LatticeModel:
    """A model with the mean of the weights of `models`, and otherwise like the first of them.

    Its calibration is removed, because its scores differ from theirs.

    Args:
        models: two or more models that were trained with one recipe (settings that change no shape may differ) and on
            the same text, so that they have the same words, rows and tags.

    Raises:
        ModelError: fewer than two models, they differ in something else than their weights, they have BERT features, or
            their tables are in 8 bits.
    """
    if len(models) < 2:
        raise ModelError(f"a mean needs two models or more, {len(models)} given")
    first = models[0]
    if first.tagger.encoder.features is not None:
        raise ModelError("the mean of models with BERT features is not supported")
    tables = [m for model in models for m in model.tagger.modules() if isinstance(m, SplitEmbedding)]
    if any(len(table.scale) for table in tables):
        raise ModelError("a model whose tables are in 8 bits has no mean; average the models before `cige compact`")
    for number, other in enumerate(models[1:], start=2):
        if (difference := _difference(first, other)) is not None:
            raise ModelError(
                f"model {number} differs from the first in its {difference}; the mean is that of models trained from "
                "the same model, with one recipe and on the same text"
            )
    states = [model.weights() for model in models]
    tagger = build_network(first.architecture, first.config, first.vocabulary, first.tagger.tags, first.widths)
    tagger.load_state_dict({name: _mean([state[name] for state in states]) for name in states[0]}, assign=True)
    of_one = ("dev_f1", "best_epoch", "seconds")  # facts of one run, not of the mean
    runs = [{key: model.facts[key] for key in ("name", "seed", *of_one) if key in model.facts} for model in models]
    facts = {key: fact for key, fact in first.facts.items() if key not in of_one} | {"mean_of": runs}
    label_facts = replace(first.label_facts, calibration={}, domains={})
    return replace(first, tagger=tagger.eval(), facts=facts, label_facts=label_facts)


def _difference(first: LatticeModel, other: LatticeModel) -> str | None:
    """What keeps two models from having a mean, or None."""
    ours, theirs = first.vocabulary, other.vocabulary
    same_numbers = (ours.n_rows, ours.n_tuned, ours.word_labels) == (theirs.n_rows, theirs.n_tuned, theirs.word_labels)
    rows, other_rows = (
        (v.chars.codes, v.chars.rows, v.bigrams.codes, v.bigrams.rows, v.word_rows) for v in (ours, theirs)
    )
    same_rows = same_numbers and all(map(np.array_equal, rows, other_rows))
    shapes, other_shapes = ({k: v.shape for k, v in m.tagger.state_dict().items()} for m in (first, other))
    checks = {
        "architecture": first.architecture == other.architecture,
        "tags": first.tagger.tags == other.tagger.tags and first.scheme == other.scheme,
        "words": first.lexicon.fingerprint == other.lexicon.fingerprint,
        "rows of characters, bigrams and words": same_rows,
        "counts of words": _same(ours.word_counts, theirs.word_counts),
        "gazetteers of words": _same(ours.word_groups, theirs.word_groups),
        "components of characters": _same(ours.components, theirs.components, ComponentTable.same_as),
        "shapes of weights": shapes == other_shapes,
    }
    return next((name for name, holds in checks.items() if not holds), None)


def _same(one: Any, other: Any, are_equal: Callable[[Any, Any], bool] = np.array_equal) -> bool:
    """Whether neither model has it, or both have the same."""
    return one is other is None or (one is not None and other is not None and are_equal(one, other))


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    """The mean of tensors of floating-point numbers; others (masks) are equal, so the first one is returned."""
    first = tensors[0]
    if not first.is_floating_point():
        return first
    return torch.stack([tensor.double() for tensor in tensors]).mean(0).to(first.dtype)
