"""cige (词格): named entity recognition in Chinese text with lattices of characters and words.

Use:
    from cige import load
    ner = load()
    ner("罗氏公司在上海开会。")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cige.api import NER, Analysis, load
    from cige.data.reading import read_sentences, write_sentences
    from cige.data.sentence import Sentence, Span
    from cige.drawing.lattice import draw_lattice
    from cige.entities.entity import Entity
    from cige.errors import CigeError, DataError, LexiconError, ModelError, RecipeError
    from cige.explain.explanation import Explanation
    from cige.lattice.lattice import Lattice, build_lattice
    from cige.lexicon.lexicon import Lexicon
    from cige.lexicon.user_word import UserWord

# The public names of each module. They are imported on first use, so that `import cige` is fast and needs no torch.
_NAMES_OF = {
    "errors": ("CigeError", "DataError", "LexiconError", "ModelError", "RecipeError"),
    "lexicon.lexicon": ("Lexicon",),
    "lexicon.user_word": ("UserWord",),
    "lattice.lattice": ("Lattice", "build_lattice"),
    "drawing.lattice": ("draw_lattice",),
    "data.sentence": ("Sentence", "Span"),
    "data.reading": ("read_sentences", "write_sentences"),
    "entities.entity": ("Entity",),
    "api": ("NER", "Analysis", "load"),
    "explain.explanation": ("Explanation",),
}

__all__ = [
    "NER",
    "Analysis",
    "CigeError",
    "DataError",
    "Entity",
    "Explanation",
    "Lattice",
    "Lexicon",
    "LexiconError",
    "ModelError",
    "RecipeError",
    "Sentence",
    "Span",
    "UserWord",
    "build_lattice",
    "draw_lattice",
    "load",
    "read_sentences",
    "write_sentences",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("cige")
    for module, names in _NAMES_OF.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"cige.{module}"), name)
            return value
    raise AttributeError(f"module 'cige' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
