"""The folder of an exported model, which is written completely or not at all.

manifest.json           kind, tags, labels, longest input, and the size and sha256 of every file
model.onnx              rows of the tables -> emissions (and attention to words)
model.onnx.data         its weights and tables, which are memory-mapped, so that only the rows of a text are read
crf.safetensors         scores of first tags, tag pairs and last tags
vocabulary.safetensors, lexicon/    as in all model folders
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import save_file

from cige.data.model_words import save_words
from cige.data.vocabulary import Vocabulary
from cige.errors import LexiconError, ModelError
from cige.folders.atomic import atomic_folder
from cige.folders.kinds import ONNX
from cige.folders.manifest import refuse_to_replace, write_manifest
from cige.json_text import JsonObject
from cige.lexicon.lexicon import Lexicon
from cige.nn.crf_numpy import NumpyCRF

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
    """Write an exported model.

    Args:
        write_graph: writes GRAPH and DATA to the given folder.
        facts: values for the manifest, including `n_tuned` (see load_words).

    Raises:
        ModelError: `folder` contains something else, or writing failed; the previous content is unchanged.
    """
    refuse_to_replace(folder, kind=ONNX, error=ModelError)
    try:
        with atomic_folder(folder) as aside:
            write_graph(aside)
            save_file({"start": crf.start, "transitions": crf.transitions, "end": crf.end}, aside / CRF)
            words = save_words(aside, vocabulary, lexicon)
            write_manifest(aside, **(facts | words | {"kind": ONNX, "version": VERSION}))
    except (OSError, SafetensorError, LexiconError) as reason:
        raise ModelError(f"{folder}: not saved ({reason}); what was there before is unchanged") from reason
