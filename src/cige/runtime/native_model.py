"""NativeModel: a tagger folder on the runtime, for prediction without PyTorch (see tagging.prediction.PredictionModel).

Where the package was built with a compiler the network, the CRF and the look-ups are C; elsewhere NumPy, with equal
results.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cige.data.model_words import must_fit_manifest, save_words
from cige.data.vocabulary import Vocabulary
from cige.entities.label_facts import LabelFacts
from cige.errors import LexiconError, ModelError
from cige.folders.atomic import atomic_folder
from cige.folders.kinds import TAGGER
from cige.folders.manifest import refuse_to_replace, write_manifest
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.models.config import ModelConfig
from cige.models.flat_config import FlatConfig
from cige.nn.crf_numpy import NumpyCRF
from cige.nn.native import VARIABLE, levels
from cige.runtime import native
from cige.runtime.flat_native import NativeFlat
from cige.runtime.native_crf import LabelFamilies, NativeCRF
from cige.runtime.precision import FLOAT32, available, chosen
from cige.runtime.ragged import RaggedLattices, RowReader, closed_chars
from cige.runtime.tagger_folder import WEIGHTS, TaggerFolder, opened
from cige.tagging.prediction import ScoredSpan

if TYPE_CHECKING:
    from cige.models.model import LatticeModel


class Network(Protocol):
    """A network in any form."""

    def emissions(self, batch: RaggedLattices) -> np.ndarray:
        """float32[sum of n_chars, L]."""
        ...

    def read_words(self, batch: RaggedLattices) -> tuple[np.ndarray, list[np.ndarray]]:
        """The same, and float32[n_chars, n_words] of each sentence (see LatticeEncoder.read_words)."""
        ...


@dataclass
class NativeModel:
    """What a LatticeModel is for prediction, read from the same folder.

    Attributes:
        network: the encoder with its output layer.
        rows: lattices -> rows of the tables.
        vocabulary: these rows.
        lexicon: the words of its lattices; users add to it.
        crf: scores of tag sequences.
        chain: the same compiled, or None.
        config: the network's settings; `architecture` is its name.
        tags: the L tag names; `scheme` is theirs, `labels` are the entity labels, sorted.
        weights_file: the weights as they were opened.
        folder: where they were.
        manifest: of that folder.
        label_facts: kinds, lengths and whatever else is known of the labels.
        wanted_precision: as it was asked for; a copy on another machine chooses anew what "auto" is.
    """

    network: Network
    rows: RowReader
    vocabulary: Vocabulary
    lexicon: Lexicon
    crf: NumpyCRF
    chain: NativeCRF | None
    config: ModelConfig
    architecture: str
    tags: list[str]
    labels: list[str]
    scheme: str
    weights_file: mmap.mmap
    folder: Path
    manifest: dict[str, Any] = field(default_factory=dict)
    label_facts: LabelFacts = field(default_factory=LabelFacts)
    wanted_precision: str = FLOAT32
    _torch_form: Any = None

    @property
    def facts(self) -> dict[str, Any]:
        """What was kept with the model: recipe, seed, scores."""
        return self.manifest.get("facts", {})

    def emissions(self, lattices: Sequence[Lattice]) -> np.ndarray:
        """float32[B, T, L] of some lattices, read as one batch; padding is zero."""
        batch = self.rows(lattices)
        return _padded(self._ragged_emissions(batch), batch.n_chars, len(self.tags))

    def read_words(self, lattices: Sequence[Lattice]) -> tuple[np.ndarray, np.ndarray]:
        """Emissions, and float32[B, T, W]: how much of what character t read came from word w."""
        batch = self.rows(lattices)
        n_chars, n_words = (max(1, int(n.max())) for n in (batch.n_chars, batch.n_words))
        attention = np.zeros((len(lattices), n_chars, n_words), np.float32)
        if not len(batch.chars):
            return np.zeros((len(lattices), 1, len(self.tags)), np.float32), attention
        emissions, shares = self.network.read_words(batch)
        for own, share in zip(attention, shares, strict=True):
            own[: share.shape[0], : share.shape[1]] = share
        return _padded(emissions, batch.n_chars, len(self.tags)), attention

    def find_spans(
        self,
        lattices: Sequence[Lattice],
        families: Mapping[str, Sequence[str]] | None = None,
        thresholds: Mapping[str, float] | None = None,
    ) -> list[list[ScoredSpan]] | None:
        """The spans of the best reading of some lattices with their probabilities, read as one batch.

        None of them overlaps a closed stretch or is longer than its label allows.

        Args:
            families: reported label -> the labels that are reported as it; a score is the sum over them. None: each
                label is reported as it is.
            thresholds: reported label -> above 0. All spans that are as probable are found, under the reported labels,
                in place of the best reading under the model's own.

        Returns:
            None where nothing was compiled, or where a user's word is of a type that the model was not trained on: then
            tagging.prediction.decode_spans says what spans may be called.
        """
        if self.chain is None or any(
            label not in self.labels for lattice in lattices for _, label in lattice.labelled_words
        ):
            return None
        if not any(lattice.text for lattice in lattices):
            return [[] for _ in lattices]
        own = None if families is None else LabelFamilies(families, thresholds, self.chain.labels)
        if isinstance(self.network, NativeFlat):
            spans, n_spans = self.network.spans(lattices, self.rows, self.chain, own)
        else:
            batch = self.rows(lattices)
            emissions = self._ragged_emissions(batch)
            spans, n_spans = self.chain.spans(emissions, batch.n_chars, closed_chars(lattices), own)
        labels = own.names if own is not None and own.finds_all else self.chain.labels
        found, first = [], 0
        listed = [ScoredSpan(start, end, labels[label], score) for start, end, label, _, score in spans.tolist()]
        for n in n_spans.tolist():
            found.append(listed[first : first + n])
            first += n
        return found

    def _ragged_emissions(self, batch: RaggedLattices) -> np.ndarray:
        if not len(batch.chars):
            return np.zeros((0, len(self.tags)), np.float32)
        padded = getattr(self.network, "padded_emissions", None)
        return self.network.emissions(batch) if padded is None else padded(batch)

    @property
    def precision(self) -> str:
        """What the network computes in (runtime.precision)."""
        return getattr(self.network, "precision", FLOAT32)

    @property
    def torch_hooks(self) -> tuple[str, ...]:
        """What explanations may ask of the PyTorch form's encoder and not of this one (explain.attention)."""
        return ("word_sets",) if self.architecture == "soft_lexicon" else ()

    def in_torch(self) -> LatticeModel:
        """The same weights and lexicon as a LatticeModel, for what only PyTorch can do with them.

        Raises:
            ModelError: PyTorch is not installed.
        """
        try:
            from cige.models.model import LatticeModel
        except ModuleNotFoundError as missing:
            raise ModelError(f'{self.folder}: this needs {missing.name}; pip install "cige[train]"') from missing
        if self._torch_form is None:
            self._torch_form = LatticeModel.load(self.folder)
        return replace(self._torch_form, lexicon=self.lexicon)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy opens the folder again, so processes that are sent the model share its weights; see `_reopened`."""
        return _reopened, (type(self), self.folder.resolve(), self.lexicon, self.wanted_precision)

    def save(self, folder: Path | str) -> None:
        """Write the folder again, with the user's words of now; it appears whole or not at all.

        Raises:
            ModelError: `folder` holds something else, or writing failed; what was there is unchanged.
        """
        folder = Path(folder)
        refuse_to_replace(folder, kind=TAGGER, error=ModelError)
        facts = {name: value for name, value in self.manifest.items() if name != "files"}
        try:
            with atomic_folder(folder) as aside:
                (aside / WEIGHTS).write_bytes(self.weights_file)
                words = save_words(aside, self.vocabulary, self.lexicon)
                write_manifest(aside, **(facts | words | self.label_facts.to_manifest()))
        except (OSError, LexiconError) as reason:
            raise ModelError(f"{folder}: not saved ({reason}); what was there before is unchanged") from reason

    @classmethod
    def load(cls, folder: Path | str, *, kernels: str | None = None, precision: str = FLOAT32) -> NativeModel:
        """Read a folder that LatticeModel.save wrote.

        Args:
            kernels: None for what CIGE_KERNELS says; "off" for NumPy, or a level (see cige.nn.native).
            precision: what FLAT computes in: "float32", "bfloat16", "int8" or "auto" (see runtime.precision). A
                SoftLexicon computes in float32.

        Raises:
            ModelError: a file is missing, cut short, foreign, the lexicon is not the one of the model, the runtime
                does not know the architecture, or it does not have the precision.
        """
        library = native.load(kernels)
        with opened(folder) as read:
            with must_fit_manifest(read.folder):
                label_facts = LabelFacts.from_manifest(read.facts)
                network = _network(read, library, precision, kernels)
                chain = None
                if library is not None:
                    crf, facts = read.crf, read.facts
                    scores = {"start": crf.start, "transitions": crf.transitions, "end": crf.end}
                    chain = NativeCRF(
                        **scores,
                        tags=facts["tags"],
                        scheme=facts["scheme"],
                        max_lengths=label_facts.max_lengths,
                        library=library,
                    )
            return cls(
                network=network,
                rows=RowReader(read.vocabulary, library),
                vocabulary=read.vocabulary,
                lexicon=read.lexicon,
                crf=read.crf,
                chain=chain,
                config=read.config,
                **{name: read.facts[name] for name in ("architecture", "tags", "labels", "scheme")},
                weights_file=read.weights_file,
                folder=read.folder,
                manifest=read.facts,
                label_facts=label_facts,
                wanted_precision=precision,
            )


def _network(read: TaggerFolder, library: Any, precision: str, kernels: str | None) -> Network:
    """The network of a folder; what other ones need is not imported, which would take a twentieth of a first answer."""
    config = read.config
    if isinstance(config, FlatConfig):
        computed_in = chosen(precision, available(library), **_blamed(precision, library, kernels))
        if library is not None:
            return NativeFlat(config, read.weights, library, computed_in)
        from cige.runtime.flat_numpy import NumpyFlat

        return NumpyFlat(config, read.weights)
    from cige.models.soft_lexicon_config import SoftLexiconConfig
    from cige.runtime.soft_lexicon import RuntimeSoftLexicon

    assert isinstance(config, SoftLexiconConfig)
    chosen(precision, [FLOAT32], of="a SoftLexicon")
    return RuntimeSoftLexicon(config, read.weights, read.vocabulary, library)


def _blamed(wanted: str, library: Any, kernels: str | None) -> dict[str, str]:
    """What `chosen` says lacks a precision, if it is the level that the environment asks for and not the processor."""
    value = os.environ.get(VARIABLE, "")
    if kernels is not None or value in ("", "auto") or wanted in available(library) or not levels():
        return {}
    best = levels()[-1]
    if wanted not in available(native.load(best)):
        return {}
    instead = f"unset it, or set it to {best}, or use precision='auto'"
    return {"of": f"the level that the environment variable {VARIABLE}={value} asks for", "instead": instead}


def _reopened(kind: type[NativeModel], folder: Path, lexicon: Lexicon, precision: str) -> NativeModel:
    """Raises ModelError where the folder is gone or damaged."""
    return replace(kind.load(folder, precision=precision), lexicon=lexicon)


def _padded(rows: np.ndarray, n_chars: np.ndarray, width: int) -> np.ndarray:
    """float32[B, longest, at least 1, width] of float32[sum of n_chars, width or more]."""
    out = np.zeros((len(n_chars), max(1, int(n_chars.max())), width), np.float32)
    first = 0
    for row, n in zip(out, n_chars.tolist(), strict=True):
        row[:n] = rows[first : first + n, :width]
        first += n
    return out
