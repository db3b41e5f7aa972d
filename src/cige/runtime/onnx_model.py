"""OnnxModel: an exported model with ONNX Runtime, without PyTorch.

Its folder is written completely or not at all, and contains

manifest.json           kind, tags, labels, longest input, and the size and sha256 of every file
model.onnx              rows of the tables -> emissions (and attention to words)
model.onnx.data         its weights and tables, which are memory-mapped, so that only the rows of a text are read
crf.safetensors         scores of first tags, tag pairs and last tags
vocabulary.safetensors, lexicon/    as in all model folders
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from safetensors.numpy import load_file, save_file

from cige.data.model_words import load_words, must_fit_manifest, save_words
from cige.data.padding import pad_lattices
from cige.data.vocabulary import EncodedLattice, Vocabulary
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.folders.kinds import ONNX
from cige.folders.manifest import read_manifest, saving, write_manifest
from cige.json_text import JsonObject
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.models.pair_grid_config import head_of_manifest
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime.native import omp_threads

if TYPE_CHECKING:
    from cige.models.model import LatticeModel

VERSION = 1
GRAPH, DATA, CRF = "model.onnx", "model.onnx.data", "crf.safetensors"


def write_onnx_folder(
    folder: Path,
    *,
    write_graph: Callable[[Path], None],
    crf: NumpyCRF,
    vocabulary: Vocabulary,
    lexicon: Lexicon,
    facts: JsonObject,
) -> None:
    """Write an exported model, completely or not at all.

    Args:
        write_graph: writes GRAPH and DATA to the given folder.
        facts: values for the manifest, including `n_tuned` (see load_words).

    Raises:
        ModelError: `folder` contains something else, or writing failed; the previous content is unchanged.
    """
    with saving(folder, ONNX) as aside:
        write_graph(aside)
        save_file({"start": crf.start, "transitions": crf.transitions, "end": crf.end}, aside / CRF)
        words = save_words(aside, vocabulary, lexicon)
        write_manifest(aside, **(facts | words | {"kind": ONNX, "version": VERSION}))


@dataclass
class OnnxModel:
    """The counterpart of LatticeModel for prediction (see PredictionModel) that reads an exported folder.

    Attributes are those of NativeModel, and the following.

    Attributes:
        session: the onnxruntime.InferenceSession of the graph.
        max_chars: maximum T of a batch.
    """

    session: Any
    vocabulary: Vocabulary
    lexicon: Lexicon
    crf: NumpyCRF
    tags: list[str]
    labels: list[str]
    scheme: str
    architecture: str
    max_chars: int
    label_facts: LabelFacts
    folder: Path
    manifest: JsonObject = field(default_factory=dict)
    config: ClassVar[None] = None
    """As in NativeModel, like the next ones; the graph has what they would say."""
    precision: ClassVar[str | None] = None
    is_compiled: ClassVar[bool] = False
    n_threads: ClassVar[int | None] = None
    reads_words: ClassVar[bool] = True
    shows: ClassVar[frozenset[str]] = frozenset()

    @property
    def facts(self) -> JsonObject:
        """The JSON values that were saved with the model: recipe, seed, scores."""
        return self.manifest.get("facts", {})

    def in_torch(self) -> LatticeModel:
        """As in NativeModel; raises a ModelError, since a graph has no modules."""
        raise ModelError(f"{self.folder}: exported for ONNX Runtime; use the folder from which it was exported")

    def emissions(self, lattices: Sequence[Lattice]) -> np.ndarray:
        """float32[B, T, L] of a batch of lattices."""
        return self._run(lattices, ["emissions"])[0]

    def read_words(self, lattices: Sequence[Lattice]) -> tuple[np.ndarray, np.ndarray]:
        """Emissions, and float32[B, T, W]: the share of the attention of character t to word w."""
        names = [output.name for output in self.session.get_outputs()]
        emissions, *attention = self._run(lattices, names)
        if attention:
            return emissions, attention[0]
        n_words = max(lattice.n_words for lattice in lattices)  # the model does not use words
        return emissions, np.zeros((*emissions.shape[:2], n_words), np.float32)

    def _run(self, lattices: Sequence[Lattice], outputs: list[str]) -> list[np.ndarray]:
        longest = max(lattice.n_chars for lattice in lattices)
        if longest > self.max_chars:
            raise ModelError(f"a lattice of {longest} characters; {self.folder} reads up to {self.max_chars} at once")
        arrays = vars(pad_lattices([self._encoded(lattice) for lattice in lattices]))
        return self.session.run(outputs, {x.name: arrays[x.name] for x in self.session.get_inputs()})

    def _encoded(self, lattice: Lattice) -> EncodedLattice:
        encoded = self.vocabulary.encode(lattice)
        if not self.manifest["config"].get("gazetteers"):
            return encoded
        return replace(encoded, word_labels=self.vocabulary.label_and_set_ids(lattice).astype(np.int64))

    def __getstate__(self) -> dict[str, object]:
        """All fields except the session, which cannot be pickled; a copy opens the graph in `folder` again."""
        return {name: value for name, value in vars(self).items() if name != "session"}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        """Open the graph of a pickled model; raises a ModelError if the folder or the graph cannot be read."""
        vars(self).update(state)
        self.session = _open(self.folder)

    def save(self, folder: Path | str) -> None:
        """Write the folder with the current user words."""

        def copy_graph(aside: Path) -> None:
            for name in (GRAPH, DATA):
                shutil.copyfile(self.folder / name, aside / name)

        write_onnx_folder(
            Path(folder),
            write_graph=copy_graph,
            crf=self.crf,
            vocabulary=self.vocabulary,
            lexicon=self.lexicon,
            facts={name: value for name, value in self.manifest.items() if name != "files"},
        )

    def find_spans(self, lattices: Sequence[Lattice], *_: object) -> None:
        """None: its emissions are decoded by `tagging.decoding`."""

    @classmethod
    def load(cls, folder: Path | str) -> OnnxModel:
        """Read a folder that `export_onnx` wrote.

        Raises:
            ModelError: a file is missing, truncated or not of a model, the lexicon is not that of the model, or
                onnxruntime is not installed.
        """
        folder = Path(folder)
        facts = read_manifest(folder, kind=ONNX, version=VERSION, error=ModelError, check_contents=True)
        vocabulary, lexicon = load_words(folder, facts)
        session = _open(folder)
        with must_fit_manifest(folder):
            head_of_manifest(facts)  # there is none, but tags are checked
            model = cls(
                session=session,
                vocabulary=vocabulary,
                lexicon=lexicon,
                crf=NumpyCRF(**load_file(folder / CRF)),
                **{name: facts[name] for name in ("tags", "labels", "scheme", "architecture", "max_chars")},
                label_facts=LabelFacts.from_manifest(facts),
                folder=folder.resolve(),
                manifest=facts,
            )
            emissions = model.emissions([Lattice(text="词", words=np.zeros((0, 3), np.int32), n_base=len(lexicon))])
            if emissions.shape != (1, 1, len(model.tags)) or len(model.crf.start) != len(model.tags):
                raise ValueError(f"scores for {emissions.shape[-1]} tags, {len(model.tags)} in the manifest")
        return model


def _open(folder: Path) -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError as missing:
        raise ModelError(f"{folder}: an exported model needs {missing.name}; pip install 'cige[onnx]'") from missing
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = omp_threads() or 0  # as for PyTorch; 0 uses all cores
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads do not busy-wait
    options.log_severity_level = 3  # errors
    try:
        return onnxruntime.InferenceSession(folder / GRAPH, options, providers=["CPUExecutionProvider"])
    except Exception as reason:  # onnxruntime's own errors have no common base
        raise ModelError(
            f"{folder / GRAPH}: ONNX Runtime cannot read it ({reason}); export the model again"
        ) from reason
