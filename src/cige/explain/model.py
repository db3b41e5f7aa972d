"""LoadedModel: what an NER and its explanations require of a model besides its predictions."""

from __future__ import annotations

from dataclasses import Field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from cige.data.vocabulary import Vocabulary
from cige.json_text import JsonObject
from cige.models.config import ModelConfig
from cige.tagging.prediction import PredictionModel

if TYPE_CHECKING:  # most models need no PyTorch
    from cige.models.model import LatticeModel


class LoadedModel(PredictionModel, Protocol):
    """A dataclass that was read from a folder: a NativeModel, a LatticeModel (PyTorch) or an OnnxModel.

    Attributes:
        architecture: name of the network; config: its settings, None for an exported model.
        vocabulary: the rows of its tables.
        facts: the JSON values that were saved with it: recipe, seed, scores.
        precision: the number format in which cige's own runtime computes; None for other runtimes.
        is_compiled: whether prediction runs in C, so that several threads are faster than one.
        n_threads: the number of threads that it may use; None for the default.
        reads_words: whether words are an input; True for every exported model.
        shows: the methods of its encoder in PyTorch that give "word_sets" and "attention_maps".
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    architecture: str
    vocabulary: Vocabulary

    @property
    def config(self) -> ModelConfig | None: ...

    @property
    def facts(self) -> JsonObject: ...

    @property
    def precision(self) -> str | None: ...

    @property
    def is_compiled(self) -> bool: ...

    @property
    def n_threads(self) -> int | None: ...

    @property
    def reads_words(self) -> bool: ...

    @property
    def shows(self) -> frozenset[str]: ...

    def in_torch(self) -> LatticeModel:
        """The model with an encoder in PyTorch; raises a ModelError if there is none, or PyTorch is not installed."""
        ...
