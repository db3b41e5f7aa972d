"""The network of a model folder: FLAT or SoftLexicon, in C or NumPy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from cige import instruction_sets
from cige.models.flat_config import FlatConfig
from cige.runtime import native
from cige.runtime.component_rows import with_gazetteer_rows
from cige.runtime.flat_native import NativeFlat
from cige.runtime.precision import FLOAT32, available, chosen
from cige.runtime.tagger_folder import TaggerFolder

if TYPE_CHECKING:
    from cige.runtime.flat_numpy import NumpyFlat
    from cige.runtime.soft_lexicon import RuntimeSoftLexicon


Network: TypeAlias = "NativeFlat | NumpyFlat | RuntimeSoftLexicon"


def network_of(read: TaggerFolder, library: native.Library | None, precision: str, kernels: str | None) -> Network:
    """The network of a folder, whose configuration names no BERT; NumPy computes it if there is no `library`.

    Modules of other networks are not imported, which makes the first prediction faster.
    """
    config = read.config
    if isinstance(config, FlatConfig):
        weights = with_gazetteer_rows(read.weights, read.vocabulary)
        computed_in = chosen(precision, available(library), **_cause_of_refusal(precision, library, kernels))
        if library is not None:
            return NativeFlat(config, weights, library, computed_in)
        from cige.runtime.flat_numpy import NumpyFlat

        return NumpyFlat(config, weights)
    from cige.runtime.soft_lexicon import RuntimeSoftLexicon

    chosen(precision, [FLOAT32], of="a SoftLexicon")
    return RuntimeSoftLexicon(config, read.weights, read.vocabulary, library)


def _cause_of_refusal(wanted: str, library: native.Library | None, kernels: str | None) -> dict[str, str]:
    """What `chosen` says lacks a precision, if it is the level that the environment asks for and not the processor."""
    value = os.environ.get(instruction_sets.VARIABLE, "")
    if kernels is not None or value in ("", "auto") or wanted in available(library) or not native.levels():
        return {}
    best = native.levels()[-1]
    if wanted not in available(native.load(best)):
        return {}
    instead = f"unset it, or set it to {best}, or use precision='auto'"
    setting = f"the environment variable {instruction_sets.VARIABLE}={value}"
    return {"of": f"the level that {setting} asks for", "instead": instead}
