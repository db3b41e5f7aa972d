"""The kinds of model folders, by the name in their manifest: their use and their loaders.

New kinds are registered here; no other module needs their names. Loaders are given by name, so that opening a folder
imports only the modules of its kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A kind of model folder.

    Attributes:
        use: what such a folder is for, for error messages if it was given instead of another kind.
        finder: "module:function" of the function that loads a model that finds entities, called with (folder, device=);
            None if the model does not find entities.
    """

    use: str
    finder: str | None = None

    def open_finder(self, folder: Path, *, device: str, **options: Any) -> Any:
        """Load a folder of this kind as an EntityFinder; `options` are specific to the kind."""
        assert self.finder is not None
        module, _, name = self.finder.partition(":")
        return getattr(import_module(module), name)(folder, device=device, **options)


TAGGER, ONNX, PRETRAINED, TUNED = "cige model", "cige onnx model", "cige pre-trained model", "cige tuned model"
CHECKPOINT, PRETRAINING_DATA, SHARD = "cige training checkpoint", "cige pre-training data", "cige pre-training shard"
LEXICON, JOINT_VOCABULARY, VECTORS = "lexicon", "joint vocabulary", "vectors"
ANNOTATION = "cige annotation"
KINDS = {
    TAGGER: Kind("`cige predict --model` and `cige.load` read it", "cige.api:open_tagger"),
    ONNX: Kind("`cige predict --model` and `cige.load` read it", "cige.api:open_onnx"),
    TUNED: Kind(
        "`cige predict --model` and `cige.load` read it if the task was to find entities; in Python TunedModel."
        "from_pretrained reads every task. `cige pretrain explain --tuned` shows what it attends to, and the "
        "fine-tuned encoder is in its folder encoder/",
        "cige.tasks.ner:open_tuned",
    ),
    PRETRAINED: Kind(
        "fine-tune it (`cige finetune TASK --model`), show what it attends to (`cige pretrain explain --model`), or "
        "read it with PretrainedLatticeBert.from_pretrained"
    ),
}
