"""OnnxModel: an exported model on ONNX Runtime; PyTorch is neither needed nor imported."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from cige.data.model_words import load_words, must_fit_manifest
from cige.data.padding import pad_lattices
from cige.data.tags import are_tags_of
from cige.data.vocabulary import Vocabulary
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.folders.kinds import ONNX
from cige.folders.manifest import read_manifest
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime.onnx_folder import CRF, DATA, GRAPH, VERSION, write_onnx_folder


@dataclass
class OnnxModel:
    """What a LatticeModel is for prediction (see prediction.PredictionModel), read from an exported folder.

    Attributes:
        session: onnxruntime.InferenceSession of the graph.
        vocabulary: rows of its tables.
        lexicon: the words of its lattices; users add to it.
        crf: scores of tag sequences.
        tags: the L tag names; `scheme` is theirs.
        labels: entity labels, sorted.
        architecture: name of the network that was exported.
        max_chars: T of the longest batch that the graph can read.
        label_facts: kinds, lengths and whatever else is known of the labels.
        folder: where graph and weights are.
        manifest: what else the folder's manifest says.
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
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """What was kept with the model: recipe, seed, scores."""
        return self.manifest.get("facts", {})

    def emissions(self, lattices: Sequence[Lattice]) -> np.ndarray:
        """float32[B, T, L] of some lattices, read as one batch."""
        return self._run(lattices, ["emissions"])[0]

    def read_words(self, lattices: Sequence[Lattice]) -> tuple[np.ndarray, np.ndarray]:
        """Emissions, and float32[B, T, W]: how much of what character t read came from word w."""
        names = [output.name for output in self.session.get_outputs()]
        emissions, *attention = self._run(lattices, names)
        if attention:
            return emissions, attention[0]
        n_words = max(lattice.n_words for lattice in lattices)  # the model reads no words
        return emissions, np.zeros((*emissions.shape[:2], n_words), np.float32)

    def _run(self, lattices: Sequence[Lattice], outputs: list[str]) -> list[np.ndarray]:
        longest = max(lattice.n_chars for lattice in lattices)
        if longest > self.max_chars:
            raise ModelError(f"a lattice of {longest} characters; {self.folder} reads up to {self.max_chars} at once")
        arrays = vars(pad_lattices([self.vocabulary.encode(lattice) for lattice in lattices]))
        return self.session.run(outputs, {x.name: arrays[x.name] for x in self.session.get_inputs()})

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the session, which cannot be pickled; a copy opens the graph in `folder` again."""
        return {name: value for name, value in vars(self).items() if name != "session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Raises ModelError where the folder is gone or its graph cannot be read."""
        vars(self).update(state)
        self.session = _open(self.folder)

    def save(self, folder: Path | str) -> None:
        """Write the folder again, with the user's words of now."""

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

    @classmethod
    def load(cls, folder: Path | str) -> OnnxModel:
        """Read a folder that `export_onnx` wrote.

        Raises:
            ModelError: a file is missing, cut short, foreign, or the lexicon is not the one of the model; or
                onnxruntime is not installed.
        """
        folder = Path(folder)
        facts = read_manifest(folder, kind=ONNX, version=VERSION, error=ModelError, check_contents=True)
        vocabulary, lexicon = load_words(folder, facts)
        session = _open(folder)
        with must_fit_manifest(folder):
            if not are_tags_of(facts["tags"], facts["labels"], facts["scheme"]):
                raise ValueError(f"{len(facts['tags'])} tags that are not those of its labels in {facts['scheme']}")
            model = cls(
                session=session,
                vocabulary=vocabulary,
                lexicon=lexicon,
                crf=NumpyCRF(**load_file(folder / CRF)),
                tags=facts["tags"],
                labels=facts["labels"],
                scheme=facts["scheme"],
                architecture=facts["architecture"],
                max_chars=facts["max_chars"],
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
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)  # the knob that PyTorch obeys; 0: all
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the cores to others
    options.log_severity_level = 3  # errors
    try:
        return onnxruntime.InferenceSession(folder / GRAPH, options, providers=["CPUExecutionProvider"])
    except Exception as reason:  # onnxruntime's own errors have no common base
        raise ModelError(
            f"{folder / GRAPH}: ONNX Runtime cannot read it ({reason}); export the model again"
        ) from reason
