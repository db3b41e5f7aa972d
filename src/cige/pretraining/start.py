"""Going on from a pre-trained model: its weights, and for tokens that it does not know the mean of their pieces.

So a general model goes on with the text of a domain, and with the words of that domain in its vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

from cige.errors import ModelError, RecipeError
from cige.folders.hub import model_folder
from cige.folders.kinds import PRETRAINED
from cige.folders.manifest import read_manifest
from cige.lexicon.joint_vocabulary import JointVocabulary
from cige.models.lattice_bert.heads import LatticeBertForPreTraining
from cige.models.lattice_bert.network import LatticeBertConfig
from cige.models.lattice_bert.pretrained import CONFIG, FORMAT_VERSION, PretrainedLatticeBert

_ROWS = ("bert.embeddings.tokens.weight", "token_bias")  # what there is one of for each token


@dataclass(frozen=True)
class Origins:
    """Where the tokens of a model that went on from another come from: numbers of tokens.

    Attributes:
        known: of the other's vocabulary.
        made: words that begin as the mean of their pieces.
        drawn: pieces that are new, and words none of whose pieces is known; they begin with random vectors.
    """

    known: int
    made: int
    drawn: int


def settings_of(start_from: str) -> dict[str, Any]:
    """The fields of a pre-trained model's LatticeBertConfig; raises RecipeError where there is no such model."""
    try:
        folder = model_folder(start_from)
        read_manifest(folder, kind=PRETRAINED, version=FORMAT_VERSION, error=ModelError)
        return asdict(LatticeBertConfig(**json.loads((folder / CONFIG).read_text(encoding="utf-8"))["config"]))
    except (ModelError, OSError, ValueError, LookupError, TypeError) as reason:
        raise RecipeError(f"start_from: {start_from} is no pre-trained model ({reason})") from reason


@torch.no_grad()
def go_on_from(model: LatticeBertForPreTraining, source: PretrainedLatticeBert, vocabulary: JointVocabulary) -> Origins:
    """Give `model` the weights of `source`.

    Tokens are found by their text, so the two vocabularies may differ in any way. A source without heads (one tuned
    for a task) leaves those of `model` as they are, and so does a head with other classes.

    Args:
        vocabulary: of `model`, whose tokens are the first ones of it (all, or the pieces alone).

    Raises:
        RecipeError: the two differ in size or in the parts that they have.
    """
    given, own = source.network.state_dict(), model.state_dict()
    if not isinstance(source.network, LatticeBertForPreTraining):
        given = {f"bert.{name}": weight for name, weight in given.items()}
    given = {name: weight for name, weight in given.items() if not _is_another_head(name, weight, own)}
    _check_sizes(model.config, source.config, own, given)
    n_tokens = model.config.n_tokens
    rows, origins = _rows(vocabulary, source.vocabulary, n_tokens)
    for name in _ROWS:
        if name in given:
            given[name] = _taken(own[name], given[name], rows)
    model.load_state_dict(own | given)
    return origins


def _is_another_head(name: str, weight: Tensor, own: dict[str, Tensor]) -> bool:
    return name.startswith("sentence.") and own[name].shape != weight.shape


def _check_sizes(
    config: LatticeBertConfig, of_source: LatticeBertConfig, own: dict[str, Tensor], given: dict[str, Tensor]
) -> None:
    encoder = {name for name in own.keys() | given.keys() if name.startswith("bert.")}
    if all(
        name in own and name in given and (name in _ROWS or own[name].shape == given[name].shape) for name in encoder
    ):
        return
    names = [field.name for field in fields(config) if field.name != "n_tokens"]
    differing = [
        f"{name} {getattr(config, name)} (there {getattr(of_source, name)})"
        for name in names
        if getattr(config, name) != getattr(of_source, name)
    ]
    raise RecipeError(
        f"start_from: that model has other weights than the recipe's: {', '.join(differing)}; leave `model` out of the "
        "recipe, and it is that of start_from"
    )


def _rows(
    vocabulary: JointVocabulary, of_source: JointVocabulary, n_tokens: int
) -> tuple[list[Sequence[int]], Origins]:
    """For each token the rows of the source whose mean it begins as; none where nothing is known of it."""
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


def _taken(own: Tensor, given: Tensor, rows: Sequence[Sequence[int]]) -> Tensor:
    """A copy of `own`, float[V] or float[V, E], whose row k is the mean of the rows `rows[k]` of `given`."""
    found = own.clone()
    known = torch.tensor([k for k, from_rows in enumerate(rows) if from_rows])
    flat = torch.tensor([row for from_rows in rows for row in from_rows])
    counts = torch.tensor([len(from_rows) for from_rows in rows if from_rows])
    owner = torch.repeat_interleave(torch.arange(len(known)), counts)
    sums = torch.zeros(len(known), *given.shape[1:]).index_add_(0, owner, given[flat])
    found[known] = sums / counts.view(-1, *[1] * (given.ndim - 1))
    return found
