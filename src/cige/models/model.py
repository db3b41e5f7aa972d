"""LatticeModel: a tagger with its lexicon and vocabulary, saved and loaded as one folder; GridModel: one for pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from cige.data.batch import LatticeBatch, collate
from cige.data.model_words import load_words, must_fit_manifest, save_words
from cige.data.vocabulary import Vocabulary
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.folders.checked_settings import check_settings
from cige.folders.kinds import GRID_TAGGER, TAGGER
from cige.folders.manifest import read_manifest, saving, write_manifest
from cige.json_text import JsonObject
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import Lexicon, LexiconSnapshot
from cige.lexicon.names_list import NamesList
from cige.models.build import build_network
from cige.models.config import ModelConfig, config_from_json
from cige.models.pair_grid_config import PairGridConfig, head_of_manifest
from cige.models.registry import architecture
from cige.models.tagger import Tagger
from cige.nn.bert import load_features
from cige.nn.char_features import CharFeatures
from cige.nn.crf_numpy import NumpyCRF
from cige.nn.embeddings import SplitEmbedding
from cige.nn.uninitialised import uninitialised

FORMAT_VERSION = 1
BERT = "bert"  # subfolder with the model's BERT
_WEIGHTS = "model.safetensors"
_TABLES = ("char", "bigram", "word")  # of LatticeVectors
_FEATURES = "encoder.features."  # the BERT's part of the tagger's weights


@dataclass
class LatticeModel:
    """Converts texts to emissions.

    Attributes:
        tagger: the network; `tagger.tags` are its tags, including those of UNKNOWN_TYPE ("*") if it was trained to tag
            names whose type is known only from the labels of user words.
        vocabulary: rows of the tagger's tables.
        lexicon: the words of its lattices, to which users can add words.
        config: the network's settings.
        labels: entity labels, sorted.
        architecture: name of the network in `models.registry`.
        scheme: tag scheme of `tagger.tags`.
        label_facts: facts about the labels, such as their hierarchy and maximum lengths.
        facts: JSON values that are saved with the model (recipe, seed, scores).
        pair_grid: the settings of the head of a GridModel; None for a CRF.
    """

    tagger: Tagger
    vocabulary: Vocabulary
    lexicon: Lexicon
    config: ModelConfig
    labels: list[str]
    architecture: str = "flat"
    scheme: str = "BMES"
    label_facts: LabelFacts = field(default_factory=LabelFacts)
    facts: JsonObject = field(default_factory=dict)
    pair_grid: PairGridConfig | None = None
    kind: ClassVar[str] = TAGGER
    """The kind of its folders."""
    precision: ClassVar[str | None] = None
    """As in NativeModel, like the next two; PyTorch computes in its own way, with its own threads."""
    is_compiled: ClassVar[bool] = False
    n_threads: ClassVar[int | None] = None

    def lattices(self, texts: Sequence[str], snapshot: LexiconSnapshot | None = None) -> list[Lattice]:
        """The lattice of each text, all with the same snapshot of the lexicon."""
        snapshot = snapshot or self.lexicon.snapshot()
        return [build_lattice(text, snapshot) for text in texts]

    def encode(
        self, texts: Sequence[str], snapshot: LexiconSnapshot | None = None
    ) -> tuple[LatticeBatch, list[Lattice]]:
        """The padded batch of some texts on the tagger's device, and their lattices."""
        lattices = self.lattices(texts, snapshot)
        return self.batch(lattices), lattices

    def batch(self, lattices: Sequence[Lattice]) -> LatticeBatch:
        """The padded batch of some lattices, on the tagger's device."""
        batch = collate([self.vocabulary.encode(lattice) for lattice in lattices])
        return batch.to(self.tagger.device)

    @torch.inference_mode()
    def emissions(self, lattices: Sequence[Lattice]) -> np.ndarray:
        """float32[B, T, L]: the emissions of a batch of lattices."""
        self.tagger.eval()
        return self.tagger(self.batch(lattices)).emissions.float().cpu().numpy()

    @torch.inference_mode()
    def read_words(self, lattices: Sequence[Lattice]) -> tuple[np.ndarray, np.ndarray]:
        """Emissions, and float32[B, T, W]: the share of the attention of character t to word w (see LatticeEncoder)."""
        self.tagger.eval()
        batch = self.batch(lattices)
        features, attention = self.tagger.encoder.read_words(batch)
        return self.tagger.read(features, batch).float().cpu().numpy(), attention.float().cpu().numpy()

    @property
    def reads_words(self) -> bool:
        """Whether words are an input of the network."""
        return self.tagger.encoder.embeddings.word is not None

    @property
    def shows(self) -> frozenset[str]:
        """The methods of the encoder that explanations use: "word_sets" and "attention_maps"."""
        return frozenset(name for name in ("word_sets", "attention_maps") if hasattr(self.tagger.encoder, name))

    def in_torch(self) -> LatticeModel:
        """This model; as in NativeModel."""
        return self

    @property
    def tags(self) -> list[str]:
        return self.tagger.tags

    @property
    def crf(self) -> NumpyCRF:
        return self.tagger.crf.in_numpy()

    def save(self, folder: Path | str, *, table_dtype: str | None = None) -> None:
        """Write the model folder, completely or not at all.

        Args:
            table_dtype: None keeps the tables unchanged, with trainable rows in float32. "float16" and "int8" write a
                small folder for prediction, whose tables cannot be trained further.

        Raises:
            ModelError: `folder` holds something else, or writing failed; the previous content is unchanged.
        """
        weights = {k: v for k, v in self.weights(table_dtype).items() if not k.startswith(_FEATURES)}
        features = self.tagger.encoder.features
        with saving(Path(folder), self.kind) as aside:
            save_file(weights, aside / _WEIGHTS)
            if isinstance(features, CharFeatures):
                features.save_pretrained(aside / BERT)
            words = save_words(aside, self.vocabulary, self.lexicon)
            write_manifest(
                aside,
                kind=self.kind,
                version=FORMAT_VERSION,
                n_tuned=[len(weights.get(f"encoder.embeddings.{name}.tuned", ())) for name in _TABLES],
                widths=self.widths,
                **self.manifest_facts(),
                **({} if self.pair_grid is None else {"pair_grid": asdict(self.pair_grid)}),
                **words,
            )

    def manifest_facts(self) -> JsonObject:
        """What the manifest of a model says in every format."""
        return {
            "architecture": self.architecture,
            "config": asdict(self.config),
            "tags": self.tagger.tags,
            "labels": self.labels,
            "scheme": self.scheme,
            "facts": self.facts,
            **self.label_facts.to_manifest(),
        }

    def weights(self, table_dtype: str | None = None) -> dict[str, torch.Tensor]:
        """The tagger's state on the CPU, by name; `table_dtype` as in `save`."""
        weights = {k: v.detach().cpu().contiguous() for k, v in self.tagger.state_dict().items()}
        if table_dtype is not None:
            for name, module in self.tagger.named_modules():
                if isinstance(module, SplitEmbedding):
                    weights |= {f"{name}.{k}": v for k, v in module.compact(table_dtype).items()}
        return weights

    def find_spans(self, lattices: Sequence[Lattice], *_: object) -> None:
        """None: its emissions are decoded by `tagging.decoding`."""

    @classmethod
    def load(cls, folder: Path | str, names: NamesList | None = None) -> LatticeModel:
        """Read a folder that `save` wrote; `names` replaces the model's list of names.

        Raises:
            ModelError: a file is missing, truncated or not of a model, or the lexicon is not that of the model.
        """
        folder = Path(folder)
        facts = read_manifest(folder, kind=cls.kind, version=FORMAT_VERSION, error=ModelError, check_contents=True)
        vocabulary, lexicon = load_words(folder, facts, names)
        with must_fit_manifest(folder):
            weights = load_file(folder / _WEIGHTS)
            config = config_from_json(architecture(facts["architecture"]).config_class(), facts["config"])
            check_settings(config)
            features = None
            if config.bert is not None:  # local_only: `model/bert` without such a folder is also the form of a hub id
                features = load_features(folder / BERT, tuned=config.bert_tuned, local_only=True)
            head, widths = head_of_manifest(facts), tuple(facts["widths"])
            with uninitialised():  # the file has all weights
                tagger = build_network(facts["architecture"], config, vocabulary, facts["tags"], widths, features, head)
            if features is not None:
                weights |= {_FEATURES + k: v for k, v in features.state_dict().items()}
            tagger.load_state_dict(weights, assign=True)
            _check_numbers(tagger)
            return cls(
                tagger=tagger.eval(),
                vocabulary=vocabulary,
                lexicon=lexicon,
                config=config,
                **{name: facts[name] for name in ("labels", "architecture", "scheme")},
                label_facts=LabelFacts.from_manifest(facts),
                facts=facts.get("facts", {}),
                pair_grid=head,
            )

    @property
    def widths(self) -> tuple[int, int, int]:
        """Widths of character, bigram and word vectors (0 for a table that the model does not read)."""
        tables = self.tagger.encoder.embeddings
        char, bigram, word = (t.width if t is not None else 0 for t in (tables.char, tables.bigram, tables.word))
        return char, bigram, word


@dataclass
class GridModel(LatticeModel):
    """A LatticeModel whose head scores pairs of characters, so that its entities may be nested.

    `tagger` is a GridTagger or a RelationTagger, whose `tags` are the labels.

    `emissions` returns float32[B, T, M, K], the score of the span [i, i + m + 1) and label k at [i, m, k], which
    `cige.tagging.pair_grid` decodes.
    """

    kind: ClassVar[str] = GRID_TAGGER

    @property
    def crf(self) -> NumpyCRF:
        raise AttributeError("a model with a pair grid has no CRF")


def _check_numbers(tagger: Tagger) -> None:
    """Raises a ValueError if weights that were assigned are of another type than the network's, or are not finite."""
    for name, weight in tagger.named_parameters():
        if not name.startswith(_FEATURES) and (weight.dtype != torch.float32 or not torch.isfinite(weight).all()):
            raise ValueError(f"{name} is {weight.dtype}; expected finite numbers of float32")
