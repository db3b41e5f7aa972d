"""The kinds of model folder, by the name in their manifest: what each is for, and what loads it.

A new kind registers here; no other file needs to know its name. Loaders are named, not imported, so that opening a
folder imports only what its own kind needs.
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
        use: what a user can do with such a folder, for the message where one was given in place of another kind.
        finder: "module:function" that opens a folder as something that finds entities, called with (folder, device=);
            None if it finds none.
    """

    use: str
    finder: str | None = None

    def open_finder(self, folder: Path, *, device: str, **options: Any) -> Any:
        """The EntityFinder of a folder of this kind; imports what that needs. `options` are the kind's own."""
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
