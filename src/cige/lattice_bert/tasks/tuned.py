"""TunedModel: a Lattice-BERT with the head of a task, saved and loaded as one folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from cige.errors import ModelError
from cige.folders.checked_settings import check_settings
from cige.folders.hub import model_folder
from cige.folders.manifest import read_manifest, saving, write_manifest
from cige.json_text import JsonObject, to_json
from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.encoder.pretrained import LatticeBertFeatures, PretrainedLatticeBert, must_fit_each_other
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lattice_bert.kinds import TUNED
from cige.lattice_bert.tasks.config import LEAST_ROOM
from cige.lattice_bert.tasks.items import Head, Item, Room, max_pairs_on, passes
from cige.lattice_bert.tasks.kinds import KINDS, Kind, Scores
from cige.nn.contexts import autocast, evaluating
from cige.nn.device import prediction_device

FORMAT_VERSION = 1
ENCODER, HEAD, ABOUT = "encoder", "head.safetensors", "task.json"
READ_AT_ONCE = 64  # items per forward pass without gradients, which may hold twice as many pairs as one with gradients


class TunedNetwork(nn.Module):
    """The network that is trained: a Lattice-BERT and a head."""

    def __init__(self, bert: LatticeBert, head: Head[Any, Any, Any]):
        super().__init__()
        self.bert, self.head = bert, head


@dataclass
class TunedModel:
    """A fine-tuned model that answers examples of a task."""

    network: TunedNetwork
    pretrained: PretrainedLatticeBert  # the encoder with its vocabulary
    task: str  # its name
    kind_name: str  # a key of KINDS
    room: Room
    facts: JsonObject = field(default_factory=dict)  # JSON values that are saved with the model

    @property
    def kind(self) -> Kind:
        return KINDS[self.kind_name]

    @property
    def tokenizer(self) -> LatticeTokenizer:
        return self.pretrained.tokenizer

    def items(self, examples: Sequence[Any]) -> list[Item[Any]]:
        """The items of some examples, in order."""
        items_of = partial(self.network.head.items, tokenizer=self.tokenizer, room=self.room)
        return [item for number, example in enumerate(examples) for item in items_of(number, example)]

    def predict(
        self, examples: Sequence[Any], *, items: Sequence[Item[Any]] | None = None, precision: str = "fp32"
    ) -> list[Any]:
        """The answer to each example: a label, the number of an option, spans or a text, as the head's `answer` says.

        Args:
            items: the result of `items` for these examples, if it was already computed.
            precision: "bf16" runs matrix products in bfloat16.
        """
        outputs = self.read(examples, items=items, precision=precision)
        return [self.network.head.answer(example, *read) for example, read in zip(examples, outputs, strict=True)]

    def read(
        self, examples: Sequence[Any], *, items: Sequence[Item[Any]] | None = None, precision: str = "fp32"
    ) -> list[tuple[list[Item[Any]], list[np.ndarray]]]:
        """The items of each example and the outputs of the network; arguments as for `predict`."""
        items = self.items(examples) if items is None else items
        order = np.argsort([item.n_tokens for item in items], kind="stable").tolist()
        network, outputs = self.network, [np.zeros(0)] * len(items)
        max_pairs = 2 * max_pairs_on(network.bert.pooler.weight.device)
        with torch.no_grad(), evaluating(network), autocast(network, precision):
            for chosen in passes([items[k] for k in order], max_items=READ_AT_ONCE, max_pairs=max_pairs):
                places = [order[k] for k in chosen]
                of_batch = network.head.outputs(network.bert, [items[k] for k in places])
                for place, output in zip(places, of_batch, strict=True):
                    outputs[place] = output
        of_examples: list[tuple[list[Item[Any]], list[np.ndarray]]] = [([], []) for _ in examples]
        for item, output in zip(items, outputs, strict=True):
            of_examples[item.example][0].append(item)
            of_examples[item.example][1].append(output)
        return of_examples

    def score(self, examples: Sequence[Any], answers: Sequence[Any]) -> Scores:
        """The scores of the task's kind, 0..1."""
        return self.kind.score(examples, answers)

    def save(self, folder: Path | str) -> None:
        """Write the model folder, completely or not at all. Raises a ModelError if `folder` holds something else, or
        writing failed; the previous content is unchanged."""
        weights = {k: v.detach().cpu().contiguous() for k, v in self.network.head.state_dict().items()}
        about = {
            "task": self.task,
            "kind": self.kind_name,
            "head": self.network.head.settings,
            "room": asdict(self.room),
            "facts": self.facts,
        }
        with saving(Path(folder), TUNED) as aside:
            self.pretrained.save(aside / ENCODER)
            save_file(weights, aside / HEAD)
            (aside / ABOUT).write_text(to_json(about, indent=1), encoding="utf-8")
            write_manifest(aside, kind=TUNED, version=FORMAT_VERSION)

    @classmethod
    def from_pretrained(cls, folder_or_hub_id: str | PathLike[str], *, device: str = "cpu") -> TunedModel:
        """Read a folder that `save` wrote, from this disk or from the Hugging Face hub. Raises a ModelError if there is
        no such folder, or a file is missing, truncated, unknown or inconsistent with the others."""
        folder = model_folder(folder_or_hub_id)
        read_manifest(folder, kind=TUNED, version=FORMAT_VERSION, error=ModelError, check_contents=True)
        pretrained = PretrainedLatticeBert.from_pretrained(folder / ENCODER)
        with must_fit_each_other(folder, ABOUT, HEAD):
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            head = KINDS[about["kind"]].head(width=pretrained.config.width, **about["head"])
            head.load_state_dict(load_file(folder / HEAD))
            room = _checked_room(Room(**about["room"]), pretrained.config.max_positions)
            names = str(about["task"]), str(about["kind"])
            facts = dict(about["facts"])
        network = TunedNetwork(pretrained.bert, head).to(prediction_device(device)).eval()
        return cls(network, pretrained, *names, room=room, facts=facts)


def _checked_room(room: Room, n_positions: int) -> Room:
    """The room that a folder states; raises a ValueError if it is not one that this network can read."""
    check_settings(room)
    n_tokens = LEAST_ROOM if room.max_tokens is None else room.max_tokens
    if n_tokens < LEAST_ROOM or not LEAST_ROOM <= room.max_pieces <= n_positions:
        raise ValueError(
            f"room is {room.max_tokens} tokens and {room.max_pieces} pieces; expected from {LEAST_ROOM}, and at most "
            f"the network's {n_positions} pieces"
        )
    return room


def encoder_features(folder: Path | str, *, tuned: bool, local_only: bool = False) -> LatticeBertFeatures:
    """The encoder of a folder that `TunedModel.save` wrote, without its head, as features of characters. Raises a
    ModelError if a file of the encoder is missing, truncated, unknown or inconsistent with the others."""
    return LatticeBertFeatures.load(Path(folder) / ENCODER, tuned=tuned, local_only=local_only)
