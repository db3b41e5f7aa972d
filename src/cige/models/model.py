"""LatticeModel: a tagger with the lexicon and vocabulary it was trained with, saved and loaded as one folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

from cige.data.batch import LatticeBatch, collate
from cige.data.vocabulary import CodeTable, Vocabulary
from cige.errors import LexiconError, ModelError
from cige.files import atomic_folder, read_manifest, write_manifest
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import Lexicon, LexiconSnapshot
from cige.models.build import flat_network
from cige.models.flat import FlatConfig
from cige.models.tagger import Tagger
from cige.nn.embeddings import SplitEmbedding

FORMAT_VERSION = 1
KIND = "cige model"
_WEIGHTS, _VOCABULARY, _LEXICON = "model.safetensors", "vocabulary.safetensors", "lexicon"


@dataclass
class LatticeModel:
    """All that turns texts into emissions.

    Attributes:
        tagger: the network; `tagger.tags` are its tag names.
        vocabulary: rows of the tagger's tables.
        lexicon: the words of its lattices; users add to it.
        config: the network's settings.
        labels: entity labels, sorted.
        scheme: tag scheme of `tagger.tags`.
        facts: anything worth keeping with the model (recipe, seed, scores); JSON values.
    """

    tagger: Tagger
    vocabulary: Vocabulary
    lexicon: Lexicon
    config: FlatConfig
    labels: list[str]
    scheme: str = "BMES"
    facts: dict[str, Any] = field(default_factory=dict)

    def lattices(self, texts: Sequence[str], snapshot: LexiconSnapshot | None = None) -> list[Lattice]:
        """The lattice of each text, all against one snapshot of the lexicon."""
        snapshot = snapshot or self.lexicon.snapshot()
        return [build_lattice(text, snapshot) for text in texts]

    def encode(
        self, texts: Sequence[str], snapshot: LexiconSnapshot | None = None
    ) -> tuple[LatticeBatch, list[Lattice]]:
        """The padded batch of some texts on the tagger's device, and their lattices."""
        lattices = self.lattices(texts, snapshot)
        batch = collate([self.vocabulary.encode(lattice) for lattice in lattices])
        return batch.to(self.tagger.output.weight.device), lattices

    def save(self, folder: Path | str, *, table_dtype: str | None = None) -> None:
        """Write the model folder, whole or not at all.

        Args:
            table_dtype: None keeps the tables as they are, trainable rows in float32. "float16" or "int8" make
                a small folder for prediction: no row of the tables can be trained further.
        """
        weights = {k: v.detach().cpu().contiguous() for k, v in self.tagger.state_dict().items()}
        if table_dtype is not None:
            for name, module in self.tagger.named_modules():
                if isinstance(module, SplitEmbedding):
                    weights |= {f"{name}.{k}": v for k, v in module.compact(table_dtype).items()}
        vocabulary = self.vocabulary
        with atomic_folder(folder) as aside:
            save_file(weights, aside / _WEIGHTS)
            save_arrays(
                {
                    "chars.codes": vocabulary.chars.codes,
                    "chars.rows": vocabulary.chars.rows,
                    "bigrams.codes": vocabulary.bigrams.codes,
                    "bigrams.rows": vocabulary.bigrams.rows,
                    "word_rows": vocabulary.word_rows,
                },
                aside / _VOCABULARY,
            )
            self.lexicon.save(aside / _LEXICON)
            write_manifest(
                aside,
                kind=KIND,
                version=FORMAT_VERSION,
                model="flat",
                config=asdict(self.config),
                tags=self.tagger.tags,
                labels=self.labels,
                scheme=self.scheme,
                n_rows=vocabulary.n_rows,
                n_tuned=vocabulary.n_tuned,
                widths=[t.width for t in self._tables()],
                lexicon_fingerprint=self.lexicon.fingerprint,
                facts=self.facts,
            )

    @classmethod
    def load(cls, folder: Path | str) -> LatticeModel:
        """Read a folder that `save` wrote.

        Raises:
            ModelError: a file is missing, cut short, foreign, or the lexicon is not the one of the model.
        """
        folder = Path(folder)
        facts = read_manifest(folder, kind=KIND, version=FORMAT_VERSION, error=ModelError)
        try:
            lexicon = Lexicon.load(folder / _LEXICON)
        except LexiconError as reason:
            raise ModelError(f"{folder}: its lexicon cannot be used: {reason}") from reason
        if lexicon.fingerprint != facts["lexicon_fingerprint"]:
            raise ModelError(
                f"{folder / _LEXICON}: a lexicon of another build than the model's ({lexicon.fingerprint[:12]}, expected "
                f"{facts['lexicon_fingerprint'][:12]}); word ids would point at wrong vectors. Restore the lexicon that was "
                "saved with the model; add words of your own with lexicon.add"
            )
        try:
            arrays = load_arrays(folder / _VOCABULARY)
            weights = load_file(folder / _WEIGHTS)
            model = cls._assemble(facts, arrays, weights, lexicon)
        except (SafetensorError, KeyError, TypeError, RuntimeError, ValueError) as reason:
            raise ModelError(
                f"{folder}: weights or vocabulary do not fit the manifest ({reason}); the folder is damaged or mixed from "
                "two models, copy or save it again"
            ) from reason
        return model

    @classmethod
    def _assemble(
        cls, facts: dict[str, Any], arrays: dict[str, np.ndarray], weights: dict[str, torch.Tensor], lexicon: Lexicon
    ) -> LatticeModel:
        config = FlatConfig(**facts["config"] | {"distances": tuple(facts["config"]["distances"])})
        n_tuned = tuple(len(weights[f"encoder.embeddings.{name}.tuned"]) for name in ("char", "bigram", "word"))
        vocabulary = Vocabulary(
            chars=CodeTable(arrays["chars.codes"], arrays["chars.rows"]),
            bigrams=CodeTable(arrays["bigrams.codes"], arrays["bigrams.rows"]),
            word_rows=arrays["word_rows"],
            n_tuned=n_tuned,  # type: ignore[arg-type]
            n_rows=tuple(facts["n_rows"]),
        )
        if len(vocabulary.word_rows) != len(lexicon):
            raise ValueError(f"{len(vocabulary.word_rows)} word rows for a lexicon of {len(lexicon)} words")
        with torch.device("meta"):  # no random weights that the file would overwrite at once
            tagger = flat_network(config, vocabulary, facts["tags"], tuple(facts["widths"]))
        tagger.load_state_dict(weights, assign=True)
        return cls(
            tagger=tagger.eval(),
            vocabulary=vocabulary,
            lexicon=lexicon,
            config=config,
            labels=facts["labels"],
            scheme=facts["scheme"],
            facts=facts.get("facts", {}),
        )

    def _tables(self) -> tuple[SplitEmbedding, SplitEmbedding, SplitEmbedding]:
        embeddings = self.tagger.encoder.embeddings
        return embeddings.char, embeddings.bigram, embeddings.word
