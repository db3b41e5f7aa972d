"""Start from a pre-trained model: take its weights, and initialise new tokens with the mean of their pieces.

In this way, pre-training of a general model can continue on the text of a domain, with the words of that domain.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from cige.errors import ModelError, RecipeError
from cige.folders.hub import model_folder
from cige.folders.manifest import read_manifest
from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.network_config import LatticeBertConfig
from cige.lattice_bert.encoder.pretrained import CONFIG, FORMAT_VERSION, PretrainedLatticeBert
from cige.lattice_bert.kinds import PRETRAINED
from cige.recipes.settings import Settings

_ROWS = ("bert.embeddings.tokens.weight", "token_bias")  # weights with one row per token


@dataclass(frozen=True)
class Origins:
    """How the tokens of a model that starts from another one were initialised, as numbers of tokens.

    Attributes:
        known: tokens of the other model's vocabulary.
        made: words that are initialised with the mean of their pieces.
        drawn: new pieces, and words without any known piece, which are initialised randomly.
    """

    known: int
    made: int
    drawn: int


def settings_of(start_from: str) -> Settings:
    """The fields of a pre-trained model's LatticeBertConfig; raises RecipeError if there is no such model."""
    try:
        folder = model_folder(start_from)
        read_manifest(folder, kind=PRETRAINED, version=FORMAT_VERSION, error=ModelError)
        return asdict(LatticeBertConfig(**json.loads((folder / CONFIG).read_text(encoding="utf-8"))["config"]))
    except (ModelError, OSError, ValueError, LookupError, TypeError) as reason:
        raise RecipeError(f"start_from: {start_from} is not a pre-trained model ({reason})") from reason


@torch.no_grad()
def initialise_from(
    model: LatticeBertForPreTraining, source: PretrainedLatticeBert, vocabulary: JointVocabulary
) -> Origins:
    """Copy the weights of `source` to `model`.

    Tokens are matched by their text, so the two vocabularies may differ in any way. The heads of `model` are not
    changed if the source has none (because it was fine-tuned on a task) or has heads with other classes.

    Args:
        vocabulary: the vocabulary of `model`, which uses its first tokens (all of them, or only the pieces).

    Raises:
        RecipeError: the models differ in size or in their parts.
    """
    if source.bert.adapter is not None:
        raise RecipeError(
            "start_from: that model reads words by an adapter, which pre-training does not have; start from the model "
            "to which the adapter was added"
        )
    given, new = source.network.state_dict(), model.state_dict()
    if not isinstance(source.network, LatticeBertForPreTraining):
        given = {f"bert.{name}": weight for name, weight in given.items()}
    for name in [name for name in given if name.startswith("sentence.") and new[name].shape != given[name].shape]:
        del given[name]  # a head with other classes
    _check_sizes(model.config, source.config, new, given)
    rows, origins = _rows(vocabulary, source.vocabulary, model.config.n_tokens)
    for name in _ROWS:
        if name in given:
            given[name] = _taken(new[name], given[name], rows)
    model.load_state_dict(new | given)
    return origins


def _check_sizes(
    config: LatticeBertConfig, of_source: LatticeBertConfig, new: dict[str, Tensor], given: dict[str, Tensor]
) -> None:
    encoder = {name for name in new.keys() | given.keys() if name.startswith("bert.")}
    if all(
        name in new and name in given and (name in _ROWS or new[name].shape == given[name].shape) for name in encoder
    ):
        return
    there = asdict(of_source)
    differing = [
        f"{name} {value} (there {there[name]})"
        for name, value in asdict(config).items()
        if name != "n_tokens" and value != there[name]
    ]
    raise RecipeError(
        f"start_from: that model has other weights than the recipe's: {', '.join(differing)}; leave `model` out of the "
        "recipe, and it is that of start_from"
    )


def _rows(
    vocabulary: JointVocabulary, of_source: JointVocabulary, n_tokens: int
) -> tuple[list[Sequence[int]], Origins]:
    """For each token, the rows of the source whose mean initialises it; empty if none of its pieces is known."""
    rows: list[Sequence[int]] = []
    n_known = n_made = 0
    for number in range(n_tokens):
        token = vocabulary.token(number)
        if token in of_source:
            rows.append((of_source.id(token),))
            n_known += 1
            continue
        is_word = number >= vocabulary.n_pieces
        pieces = vocabulary.cutter.split(token).ids.tolist() if is_word else []
        known = [of_source.id(p) for p in map(vocabulary.token, pieces) if p in of_source]
        rows.append(known)
        n_made += bool(known)
    return rows, Origins(n_known, n_made, n_tokens - n_known - n_made)


def _taken(new: Tensor, given: Tensor, rows: Sequence[Sequence[int]]) -> Tensor:
    """A copy of `new`, float[V] or float[V, E], whose row k is the mean of the rows `rows[k]` of `given`."""
    taken = new.clone()
    known = torch.tensor([k for k, from_rows in enumerate(rows) if from_rows])
    flat = torch.tensor([row for from_rows in rows for row in from_rows])
    counts = torch.tensor([len(from_rows) for from_rows in rows if from_rows])
    owner = torch.repeat_interleave(torch.arange(len(known)), counts)
    sums = torch.zeros(len(known), *given.shape[1:]).index_add_(0, owner, given[flat])
    taken[known] = sums / counts.view(-1, *[1] * (given.ndim - 1))
    return taken
