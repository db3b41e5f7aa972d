"""NativeModel: a tagger for prediction without PyTorch (see tagging.prediction.PredictionModel).

The network, the CRF and the look-ups are C code if the package was built with a compiler, and otherwise NumPy with
equal results.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cige.data.model_words import must_fit_manifest, save_words
from cige.data.vocabulary import Vocabulary
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.folders.kinds import GRID_TAGGER, TAGGER
from cige.folders.manifest import saving, write_manifest
from cige.json_text import JsonObject
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import NamesList
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime import native
from cige.runtime.component_rows import with_component_rows
from cige.runtime.expected_arrays import RuntimeConfig
from cige.runtime.flat_native import NativeFlat
from cige.runtime.native_crf import LabelFamilies, NativeCRF
from cige.runtime.native_rules import NativeRules
from cige.runtime.network import Network, network_of
from cige.runtime.precision import FLOAT32
from cige.runtime.ragged import RaggedLattices, RowReader, closed_chars, padded
from cige.runtime.tagger_folder import WEIGHTS, TaggerFolder, opened
from cige.tagging.blocking import cut_edges, edges_to_cut, without_blocked
from cige.tagging.prediction_model import FoundSpans, ScoredSpan

if TYPE_CHECKING:
    from cige.models.model import LatticeModel


@dataclass
class NativeModel:
    """The counterpart of LatticeModel for prediction, which reads the same folders.

    Attributes are those of LatticeModel, and the following.

    Attributes:
        network: the encoder and the output layer.
        rows: converts lattices to rows of the tables, which are those of `vocabulary`.
        chain: the compiled `crf`, or None.
        weights_file: the opened file of weights, which is mapped.
        folder, manifest: the model folder and its manifest.
        names: the list of names that was given instead of the folder's own; None if none was.
        wanted_precision: the requested precision; if it is "auto", a copy on another machine chooses its own precision.
        n_threads: the number of threads that prediction may use; None for `cige.runtime.native.n_threads()`.
    """

    network: Network
    rows: RowReader
    vocabulary: Vocabulary
    lexicon: Lexicon
    crf: NumpyCRF
    chain: NativeCRF | None
    config: RuntimeConfig
    architecture: str
    tags: list[str]
    labels: list[str]
    scheme: str
    weights_file: mmap.mmap
    folder: Path
    manifest: JsonObject = field(default_factory=dict)
    label_facts: LabelFacts = field(default_factory=LabelFacts)
    wanted_precision: str = FLOAT32
    names: NamesList | None = None
    n_threads: int | None = None
    _torch_form: Any = None
    kind: ClassVar[str] = TAGGER
    """The kind of its folders."""

    @property
    def facts(self) -> JsonObject:
        """The JSON values that were saved with the model: recipe, seed, scores."""
        return self.manifest.get("facts", {})

    def emissions(self, lattices: Sequence[Lattice]) -> np.ndarray:
        """float32[B, T, L] of a batch of lattices; padding is zero."""
        batch = self.rows(lattices)
        return self._scores(self._ragged_emissions(batch), batch.n_chars)

    def _scores(self, rows: np.ndarray, n_chars: np.ndarray) -> np.ndarray:
        """What `emissions` returns, from what the network returns: float32[sum of n_chars, L or more]."""
        return padded(rows, n_chars, len(self.tags))

    def read_words(self, lattices: Sequence[Lattice]) -> tuple[np.ndarray, np.ndarray]:
        """Emissions, and float32[B, T, W]: the share of the attention of character t to word w."""
        batch = self.rows(lattices)
        n_chars, n_words = (max(1, int(n.max())) for n in (batch.n_chars, batch.n_words))
        attention = np.zeros((len(lattices), n_chars, n_words), np.float32)
        if not len(batch.chars):
            return self._scores(self._ragged_emissions(batch), batch.n_chars), attention
        emissions, shares = self.network.read_words(batch)
        for own, share in zip(attention, shares, strict=True):
            own[: share.shape[0], : share.shape[1]] = share
        return self._scores(emissions, batch.n_chars), attention

    def find_spans(
        self,
        lattices: Sequence[Lattice],
        families: Mapping[str, Sequence[str]] | None = None,
        thresholds: Mapping[str, float] | None = None,
    ) -> Sequence[FoundSpans | None] | None:
        """The spans of the best tags of a batch of lattices, with their probabilities.

        None of them overlaps a closed or a forced stretch, is blocked, or is longer than its label allows.

        Args:
            families: reported label -> the model's labels that are reported as it; the score is the sum over them. If
                None, each label is reported unchanged.
            thresholds: reported label -> minimum probability, greater than 0. If given, the result is all spans that
                reach it, with their reported labels, instead of the best tags with the model's labels.

        Returns:
            None if there is no compiled code. None in place of the spans of a lattice leaves it to
            tagging.decoding, as the combinations that runtime.native_rules names.
        """
        if self.chain is None:
            return None
        rules = NativeRules(lattices, self.chain, self.labels, finds_all=thresholds is not None)
        # Lattices that Python decodes (None), those with blocked spans (True) and all others (False) are read apart.
        has_blocked = [
            None if is_left else bool(lattice.rules.blocked)
            for lattice, is_left in zip(lattices, rules.is_left, strict=True)
        ]
        if len({*has_blocked}) > 1:
            found = {}
            for kind in {*has_blocked}:
                of_kind = [lattice for lattice, own in zip(lattices, has_blocked, strict=True) if own is kind]
                found[kind] = iter(self.find_spans(of_kind, families, thresholds) or ())
            return [next(found[kind]) for kind in has_blocked]
        if None in has_blocked:
            return [None] * len(lattices)
        if not any(lattice.text for lattice in lattices):
            return [FoundSpans((), candidates=None if thresholds is None else ()) for _ in lattices]
        own = None if families is None else LabelFamilies(families, thresholds, self.chain.labels, self.chain.library)
        if isinstance(self.network, NativeFlat) and not any(has_blocked):
            spans, n_spans = self.network.spans(lattices, self.rows, self.chain, own, rules.struct)
        else:
            batch = self.rows(lattices)
            emissions = self._ragged_emissions(batch)
            if any(has_blocked):
                emissions = self._with_blocked_edges(emissions, lattices, batch.n_chars, families)
            spans, n_spans = self.chain.spans(emissions, batch.n_chars, closed_chars(lattices), own, rules.struct)
        if own is None or not own.finds_all:
            return _listed(spans, n_spans, rules, rules.labels)
        listed = _listed(spans, n_spans, rules, [own.names] * len(lattices))
        return [FoundSpans((), candidates=of_lattice.spans) for of_lattice in listed]

    def _with_blocked_edges(
        self,
        emissions: np.ndarray,
        lattices: Sequence[Lattice],
        n_chars: np.ndarray,
        families: Mapping[str, Sequence[str]] | None,
    ) -> np.ndarray:
        """float32[sum of n_chars, L or more], with which no new entity reaches beyond a blocked span (see
        tagging.blocking)."""
        assert self.chain is not None
        free = [without_blocked(lattice) for lattice in lattices]
        rules = NativeRules(free, self.chain, self.labels)
        own = None if families is None else LabelFamilies(families, None, self.chain.labels, self.chain.library)
        spans, n_spans = self.chain.spans(emissions, n_chars, closed_chars(lattices), own, rules.struct)
        emissions, first = emissions.copy(), 0
        for lattice, found in zip(lattices, _listed(spans, n_spans, rules, rules.labels), strict=True):
            rows = emissions[first : first + lattice.n_chars, : len(self.tags)]
            cut_edges(rows, edges_to_cut(lattice, found.spans), tags=self.tags, scheme=self.scheme)
            first += lattice.n_chars
        return emissions

    def _ragged_emissions(self, batch: RaggedLattices) -> np.ndarray:
        if not len(batch.chars):
            return np.zeros((0, len(self.tags)), np.float32)
        unpadded = getattr(self.network, "padded_emissions", self.network.emissions)
        return unpadded(batch)

    @property
    def is_compiled(self) -> bool:
        """Whether prediction runs in C, so that several threads are faster than one."""
        return self.chain is not None

    @property
    def precision(self) -> str:
        """The precision in which the network computes (runtime.precision)."""
        return getattr(self.network, "precision", FLOAT32)

    @property
    def reads_words(self) -> bool:
        """Whether words are an input of the network."""
        return self.config.use_words

    @property
    def shows(self) -> frozenset[str]:
        """The methods of the PyTorch encoder that explanations use (explain.attention)."""
        return frozenset(("word_sets",) if self.architecture == "soft_lexicon" else ())

    def in_torch(self) -> LatticeModel:
        """A LatticeModel with the same weights and lexicon, for tasks that require PyTorch.

        Raises:
            ModelError: PyTorch is not installed.
        """
        try:
            from cige.models.model import GridModel, LatticeModel
        except ModuleNotFoundError as missing:
            raise ModelError(f'{self.folder}: this needs {missing.name}; pip install "cige[train]"') from missing
        if self._torch_form is None:
            kind = GridModel if self.kind == GRID_TAGGER else LatticeModel
            self._torch_form = kind.load(self.folder, self.names)
        return replace(self._torch_form, lexicon=self.lexicon)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the model as its folder, so that processes share the mapped weights; see `_reopened`."""
        options = {"precision": self.wanted_precision, "names": self.names, "n_threads": self.n_threads}
        return _reopened, (type(self), self.folder.resolve(), self.lexicon, options)

    def save(self, folder: Path | str) -> None:
        """Write the folder with the current user words, completely or not at all.

        Raises:
            ModelError: `folder` contains something else, or writing failed; the previous content is unchanged.
        """
        facts = {name: value for name, value in self.manifest.items() if name != "files"}
        with saving(Path(folder), self.kind) as aside:
            (aside / WEIGHTS).write_bytes(self.weights_file)
            words = save_words(aside, self.vocabulary, self.lexicon)
            write_manifest(aside, **(facts | words | self.label_facts.to_manifest()))

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        kernels: str | None = None,
        precision: str = FLOAT32,
        names: NamesList | None = None,
        n_threads: int | None = None,
    ) -> NativeModel:
        """Read a folder that LatticeModel.save wrote.

        Args:
            kernels: "off" for NumPy, or a level (see cige.instruction_sets); None uses CIGE_KERNELS.
            precision: the precision of a FLAT, one of runtime.precision.PRECISIONS or "auto". A
                SoftLexicon is always computed in float32.
            names, n_threads: see the attributes.

        Raises:
            ModelError: a file is missing, truncated or not of a model, the lexicon is not that of the model, or the
                runtime does not support the architecture or the precision.
        """
        library = native.load(kernels)
        with opened(folder, names, kind=cls.kind) as read:
            with must_fit_manifest(read.folder):
                label_facts = LabelFacts.from_manifest(read.facts)
                plain = cls._with_output(read)
                config, weights, vocabulary = with_component_rows(plain.config, plain.weights, plain.vocabulary)
                plain = replace(plain, config=config, weights=weights, vocabulary=vocabulary)
                network = network_of(plain, library, precision, kernels)
                head = cls._of_head(read, label_facts, library)
            for part in (network, head["chain"]):
                if hasattr(part, "n_threads"):  # what runs in NumPy has none
                    part.n_threads = n_threads
            return cls(
                network=network,
                rows=RowReader(vocabulary, library, reads_gazetteers=read.config.reads_gazetteers),
                vocabulary=read.vocabulary,
                lexicon=read.lexicon,
                **head,
                config=read.config,
                **{name: read.facts[name] for name in ("architecture", "tags", "labels", "scheme")},
                weights_file=read.weights_file,
                folder=read.folder,
                manifest=read.facts,
                label_facts=label_facts,
                wanted_precision=precision,
                names=names,
                n_threads=n_threads,
            )

    @classmethod
    def _with_output(cls, read: TaggerFolder) -> TaggerFolder:
        """The folder with the output layer that the network is to compute."""
        return read

    @classmethod
    def _of_head(cls, read: TaggerFolder, label_facts: LabelFacts, library: native.Library | None) -> dict[str, Any]:
        """The attributes of what decodes the output of the network."""
        crf, facts = read.crf, read.facts
        assert crf is not None
        if library is None:
            return {"crf": crf, "chain": None}
        chain = NativeCRF(
            start=crf.start,
            transitions=crf.transitions,
            end=crf.end,
            tags=facts["tags"],
            scheme=facts["scheme"],
            max_lengths=label_facts.max_lengths,
            library=library,
        )
        return {"crf": crf, "chain": chain}


def _listed(
    spans: np.ndarray, n_spans: np.ndarray, rules: NativeRules, labels: Sequence[Sequence[str]]
) -> list[FoundSpans]:
    """The spans of each lattice, given those of all in order and what their label numbers mean in each."""
    rows, first = spans.tolist(), 0
    found = []
    for n, names, typed in zip(n_spans.tolist(), labels, rules.typed, strict=True):
        listed = [ScoredSpan(start, end, names[k], score) for start, end, k, _, score in rows[first : first + n]]
        found.append(FoundSpans(listed, typed))
        first += n
    return found


def _reopened(kind: type[NativeModel], folder: Path, lexicon: Lexicon, options: JsonObject) -> NativeModel:
    """Open a pickled model; raises a ModelError if the folder is missing or damaged."""
    return replace(kind.load(folder, **options), lexicon=lexicon)
