"""PretrainedLatticeBert: a Lattice-BERT with its vocabulary, saved and loaded as one folder, and what reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from cige.errors import LexiconError, ModelError
from cige.folders.hub import model_folder
from cige.folders.manifest import read_manifest, saving, write_manifest
from cige.json_text import JsonObject, to_json
from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.encoder.network_config import LatticeBertConfig
from cige.lattice_bert.encoder.reading import TextFeatures, read_texts
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lattice_bert.encoder.word_adapter import WordAdapter, WordAdapterConfig
from cige.lattice_bert.kinds import PRETRAINED
from cige.lexicon.vectors import VectorTable
from cige.nn.char_features import BetweenLayers, CharFeatures
from cige.nn.contexts import evaluating
from cige.nn.uninitialised import uninitialised
from cige.text.code_points import normal_form

FORMAT_VERSION = 1
CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocabulary"
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass
class PretrainedLatticeBert:
    """A pre-trained network and its vocabulary, which convert texts to vectors.

    Attributes:
        network: the network with the heads of pre-training, or only the encoder.
        vocabulary: its tokens; without words for a model of characters only.
        facts: JSON values that are saved with the model (recipe, steps, accuracies).

    Raises:
        ModelError: the network has more or fewer tokens than the vocabulary.
    """

    network: LatticeBertForPreTraining | LatticeBert
    vocabulary: JointVocabulary
    facts: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        adapter = self.bert.adapter
        n_tokens = self.config.n_tokens + (0 if adapter is None else adapter.config.n_words)
        if n_tokens != len(self.vocabulary):
            raise ModelError(
                f"a network of {n_tokens:,} tokens and a vocabulary of {len(self.vocabulary):,}; they do "
                "not belong together, and ids would refer to the wrong vectors"
            )

    @property
    def bert(self) -> LatticeBert:
        return self.network.bert if isinstance(self.network, LatticeBertForPreTraining) else self.network

    @property
    def config(self) -> LatticeBertConfig:
        return self.network.config

    @cached_property
    def tokenizer(self) -> LatticeTokenizer:
        return LatticeTokenizer(self.vocabulary)

    @torch.no_grad()
    def features(self, texts: Sequence[str]) -> list[TextFeatures]:
        """The vectors of the tokens and characters of each text, in the given order.

        Texts may have any length and content. Dropout is off; for training, use `LatticeBertFeatures`.
        """
        if isinstance(texts, str):
            raise ModelError(f"given the text {texts[:20]!r}, expected a list of texts")
        with evaluating(self.bert):
            return read_texts(self.bert, self.tokenizer, texts)

    def save(self, folder: Path | str, *, dtype: str = "float32") -> None:
        """Write the model folder, completely or not at all.

        Args:
            dtype: type of the weights on disk: "float32", or "float16" or "bfloat16" at half the size.

        Raises:
            ModelError: `folder` holds something else, or writing failed; the previous content is unchanged.
        """
        if dtype not in DTYPES:
            raise ModelError(f"dtype {dtype!r}: expected one of {', '.join(DTYPES)}")
        weights = {k: v.detach().to("cpu", DTYPES[dtype]).contiguous() for k, v in self.network.state_dict().items()}
        has_heads = isinstance(self.network, LatticeBertForPreTraining)
        about = {
            "model": "lattice_bert",
            "config": asdict(self.config),
            "n_sentence_classes": self.network.sentence.out_features if has_heads else None,  # type: ignore[union-attr]
            "vocabulary_fingerprint": self.vocabulary.fingerprint,
            "facts": self.facts,
        }
        if self.bert.adapter is not None:
            about["adapter"] = asdict(self.bert.adapter.config)
        with saving(Path(folder), PRETRAINED) as aside:
            save_file(weights, aside / WEIGHTS)
            (aside / CONFIG).write_text(to_json(about, indent=1), encoding="utf-8")
            self.vocabulary.save(aside / VOCABULARY)
            write_manifest(aside, kind=PRETRAINED, version=FORMAT_VERSION)

    @classmethod
    def from_pretrained(cls, folder_or_hub_id: str | PathLike[str], **hub_options: Any) -> PretrainedLatticeBert:
        """Read a folder that `save` wrote, from disk or from the Hugging Face hub; weights are loaded as float32.

        Args:
            hub_options: see `cige.folders.hub.model_folder`.

        Raises:
            ModelError: there is no such folder, or a file is missing, truncated, unknown or inconsistent with the
                others.
        """
        folder = model_folder(folder_or_hub_id, **hub_options)
        read_manifest(folder, kind=PRETRAINED, version=FORMAT_VERSION, error=ModelError, check_contents=True)
        try:
            vocabulary = JointVocabulary.load(folder / VOCABULARY)
        except LexiconError as reason:
            raise ModelError(f"{folder}: its vocabulary cannot be used: {reason}") from reason
        with must_fit_each_other(folder, CONFIG, WEIGHTS):
            about = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
            expected = str(about["vocabulary_fingerprint"])
            network = _read_network(about, load_file(folder / WEIGHTS))
            facts = dict(about["facts"])
        if vocabulary.fingerprint != expected:
            raise ModelError(
                f"{folder / VOCABULARY}: another vocabulary than the model's ({vocabulary.fingerprint[:12]}, expected "
                f"{expected[:12]}); ids would point at wrong vectors. Restore the one that was saved with the model"
            )
        return cls(network=network, vocabulary=vocabulary, facts=facts)


@contextmanager
def must_fit_each_other(folder: Path, settings: str, weights: str) -> Iterator[None]:
    """Context manager for reading two files of a model folder; raises a ModelError if they are damaged or differ."""
    try:
        yield
    except (SafetensorError, OSError, LookupError, TypeError, ValueError, RuntimeError) as reason:
        short = " ".join(str(reason).split())[:300]
        raise ModelError(
            f"{folder}: {settings} and {weights} do not fit each other ({short}); the folder is damaged or mixed from "
            "two models, copy or save it again"
        ) from reason


def _read_network(about: JsonObject, weights: dict[str, torch.Tensor]) -> LatticeBertForPreTraining | LatticeBert:
    config, n_classes = LatticeBertConfig(**about["config"]), about["n_sentence_classes"]
    if config.n_layers > len(weights):  # a network of a wrong number of layers would be built until memory is full
        raise ValueError(f"n_layers is {config.n_layers}, and there are weights of fewer layers")
    network: LatticeBertForPreTraining | LatticeBert
    with uninitialised():  # the file has all weights
        network = LatticeBert(config) if n_classes is None else LatticeBertForPreTraining(config, n_classes)
        if "adapter" in about:
            bert = network if isinstance(network, LatticeBert) else network.bert
            bert.adapter = WordAdapter(WordAdapterConfig(**about["adapter"]), width=config.width)
    network.load_state_dict({name: weight.float() for name, weight in weights.items()}, assign=True)
    return network.requires_grad_().eval()


def add_adapter(
    pretrained: PretrainedLatticeBert, vectors: VectorTable, config: WordAdapterConfig, *, seed: int = 1
) -> PretrainedLatticeBert:
    """A copy of a pre-trained model of characters that reads words by an untrained adapter; heads are left out.

    Args:
        vectors: the words, of which those in normal form that consist of several pieces become tokens.
        config: settings; `n_words` is the maximum number of words, taken in order, and `word_width` that of `vectors`.
        seed: determines the initial weights of the adapter, except its word vectors.

    Raises:
        ModelError: the model reads words already, it has no layer with the number `after_layer`, or no word remains.
    """
    n_layers = pretrained.config.n_layers
    if pretrained.vocabulary.n_words:
        raise ModelError(
            f"this model reads {pretrained.vocabulary.n_words:,} words already; expected one of characters alone, such "
            "as that of the recipe pretrain/tiny_bert_our"
        )
    if not 1 <= config.after_layer <= n_layers:
        raise ModelError(f"after_layer is {config.after_layer}, expected from 1 to {n_layers}, the model's last layer")
    words = [word for word in vectors.words if len(word) > 1 and normal_form(word) == word]
    vocabulary = JointVocabulary.build(pretrained.vocabulary.pieces, words, n_words=config.n_words)
    if not vocabulary.n_words:
        raise ModelError(
            f"none of the {len(vectors):,} words with vectors can be a token; expected words of two or more characters"
        )
    torch.manual_seed(seed)
    adapter = WordAdapter(
        replace(config, n_words=vocabulary.n_words, word_width=vectors.width), width=pretrained.config.width
    )
    rows = vectors.vectors[vectors.rows(vocabulary.words)]
    with torch.no_grad():
        adapter.words.weight.copy_(torch.from_numpy(rows))
    bert = pretrained.bert.copy_with(adapter)
    return PretrainedLatticeBert(network=bert, vocabulary=vocabulary, facts=pretrained.facts)


class LatticeBertFeatures(CharFeatures):
    """Returns the last hidden vector of each character; the words are those of the Lattice-BERT's vocabulary.

    Args:
        pretrained: the encoder and its vocabulary; heads are ignored.
        tuned: whether to fine-tune it; otherwise it stays in evaluation mode and has no gradient.
    """

    bert: LatticeBert

    def __init__(self, *, pretrained: PretrainedLatticeBert, tuned: bool):
        super().__init__()
        self.bert = pretrained.bert.requires_grad_(tuned)
        self.bert.pooler.requires_grad_(False)  # the pooled vector is not used here
        self.vocabulary, self.tokenizer, self.facts = pretrained.vocabulary, pretrained.tokenizer, pretrained.facts
        self.tuned = tuned
        self.width = self.bert.config.width
        self.n_layers = self.bert.config.n_layers if self.bert.adapter is None else 0
        self.train(self.training)

    @classmethod
    def load(cls, path_or_hub_id: Path | str, *, tuned: bool, local_only: bool = False) -> LatticeBertFeatures:
        """Read a folder that PretrainedLatticeBert.save or `save_pretrained` wrote, from disk or from the hub. Raises a
        ModelError if there is no such model, or it is incomplete."""
        options = {"local_files_only": True} if local_only else {}
        return cls(pretrained=PretrainedLatticeBert.from_pretrained(path_or_hub_id, **options), tuned=tuned)

    def save_pretrained(self, folder: Path) -> None:
        """Write a folder that `load` can read without a network connection."""
        PretrainedLatticeBert(network=self.bert, vocabulary=self.vocabulary, facts=self.facts).save(folder)

    def read(self, texts: Sequence[str], device: torch.device, between: BetweenLayers | None) -> Sequence[Tensor]:
        """See CharFeatures; zero on characters that no word piece covers."""
        with nullcontext() if self.tuned or between is not None else torch.no_grad():
            return [text.char_vectors for text in read_texts(self.bert, self.tokenizer, texts, between)]
