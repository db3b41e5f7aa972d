"""The kinds of cige's folders, by the name in their manifest."""

from __future__ import annotations

from cige.extensions import Kind, extensions

TAGGER, ONNX, CHECKPOINT = "cige model", "cige onnx model", "cige training checkpoint"
GRID_TAGGER = "cige nested model"
LEXICON, VECTORS, ANNOTATION = "lexicon", "vectors", "cige annotation"
_CORE = dict.fromkeys((TAGGER, GRID_TAGGER, ONNX), Kind("`cige predict --model` and `cige.load` read it"))


def find_kind(name: object) -> Kind | None:
    """The kind of this name, of the core or of an extension; None if there is no such kind of model."""
    if not isinstance(name, str):
        return None
    kinds = [_CORE, *(extension.kinds for extension in extensions())]
    return next((known[name] for known in kinds if name in known), None)
