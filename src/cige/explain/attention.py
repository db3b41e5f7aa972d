"""The attention of a model: the word sets of each character, and attention maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from cige.errors import ModelError
from cige.explain.model import LoadedModel
from cige.lexicon.lexicon import LexiconSnapshot
from cige.tagging.windows import LatticeWord, ReadWindow, lattice_word

if TYPE_CHECKING:  # most explanations do not need PyTorch
    from cige.nn.attention_maps import AttentionMaps
    from cige.nn.soft_lexicon import WordSets

WORDS_READ = "read from words"


@dataclass(frozen=True)
class SetMember:
    """A word in one of a character's sets, or None for the character itself.

    The `weight` (0..1) is its share of all four sets.
    """

    word: LatticeWord | None
    weight: float

    @property
    def is_user(self) -> bool:
        """Whether it is a word that the user added."""
        return self.word is not None and self.word.is_user


@dataclass(frozen=True)
class CharacterSets:
    """The words that begin at a character (B), run through it (M), end there (E) or consist of it (S).

    Attributes:
        place: offset of the character in code points of the user's text.
        char: the character.
        sets: maps "B", "M", "E" and "S" to their members, the one with the largest weight first; S contains the
            character itself.
        none: the weights (0..1) of the empty sets among B, M and E, each of which counts as one special word. Together
            with them, the weights of all members sum to 1.
    """

    place: int
    char: str
    sets: dict[str, list[SetMember]]
    none: dict[str, float]

    def to_dict(self) -> dict[str, object]:
        """A dict with `start`, `char`, a list of words for each set, and `none`."""
        listed = {name: [self._member(member) for member in members] for name, members in self.sets.items()}
        none = {name: round(weight, 4) for name, weight in self.none.items()}
        return {"start": self.place, "char": self.char} | listed | {"none": none}

    def _member(self, member: SetMember) -> dict[str, object]:
        word = member.word or LatticeWord(self.place, self.place + 1, self.char, False)
        return vars(word) | {"is_character": member.word is None, "weight": round(member.weight, 4)}


@dataclass(frozen=True)
class AttentionMap:
    """Attention of the queries (rows) to the keys (columns) in one window of a text.

    Attributes:
        name: the attention that is shown.
        asking, answering: the kinds of queries and of keys: "characters", "word sets" (those of each character) or
            "words" (of the lattice).
        start: offset of the window's first character in the user's text; -1 if a semicolon stands before the text,
            as in cells of tables with some models (see `cige.tagging.windows`).
        rows, columns: labels of the rows and columns, each a character or a word.
        heads: float32[H, rows, columns], 0..1, for each head. Rows sum to 1, except in maps of how characters read
            words, in which the rest of a row's attention is that to characters.
    """

    name: str
    asking: str
    answering: str
    start: int
    rows: list[str]
    columns: list[str]
    heads: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """float32[rows, columns], the mean of the heads."""
        return self.heads.mean(0)

    def to_dict(self) -> dict[str, object]:
        """Every field in a form that can be written as JSON."""
        return vars(self) | {"heads": np.round(self.heads.astype(float), 4).tolist()}


def read_word_sets(model: LoadedModel, parts: Sequence[ReadWindow], snapshot: LexiconSnapshot) -> list[CharacterSets]:
    """The word sets of each character of a text, with the model's weights; raises a ModelError, which lists the models
    that have word sets, if this one has none.
    """
    read: Callable[[ReadWindow], WordSets] | None = _encoder_method(model, "word_sets")
    if read is None or not model.reads_words:
        raise ModelError(f"{_called(model)} has no word sets; models that have: {_models_with('word_sets')}")
    word_sets = []
    for part in parts:
        window, sets = part.window, read(part)
        none = sets.none[0].tolist()
        for k, of_char in enumerate(sets.listed(0, part.lattice.n_chars)):
            if not window.core_start <= window.start + k < window.core_end:
                continue
            members = {
                name: [
                    SetMember(m.word if m.word is None else lattice_word(m.word, part, snapshot), m.weight) for m in s
                ]
                for name, s in of_char.items()
            }
            empty = {name: weight for name, weight in zip("BME", none[k], strict=True) if not members[name]}
            word_sets.append(CharacterSets(window.start + k, part.lattice.text[k], members, empty))
    return word_sets


def read_maps(model: LoadedModel, parts: Sequence[ReadWindow], snapshot: LexiconSnapshot) -> list[AttentionMap]:
    """The model's attention in each window of a text and, if it uses words, the share of each word in each character.

    Raises a ModelError, which lists the models that have attention maps, if the model has neither.
    """
    read: Callable[[ReadWindow], AttentionMaps] | None = _encoder_method(model, "attention_maps")
    if read is None and not model.reads_words:
        raise ModelError(
            f"{_called(model)} reads no words and has no attention to draw; models with attention maps: "
            f"{_models_with('attention_maps')}; every model that reads words shows how much of them it read"
        )
    maps = []
    for part in parts:
        start, chars = part.window.start, list(part.lattice.text)
        n_chars = len(chars)
        for name, asking, answering, weights in read(part).named() if read else ():
            heads = weights[:, 0, :n_chars, :n_chars].float().cpu().numpy()
            maps.append(AttentionMap(name, asking, answering, start, chars, chars, heads))
        if model.reads_words:
            listed = [lattice_word(k, part, snapshot).text for k in range(part.lattice.n_words)]
            shares = model.read_words([part.lattice])[1][:, :n_chars, : len(listed)]
            maps.append(AttentionMap(WORDS_READ, "characters", "words", start, chars, listed, shares))
    return maps


def has_word_sets(model: LoadedModel) -> bool:
    """Whether the model groups words into sets, as SoftLexicon does, and the packages to read them are installed."""
    return "word_sets" in model.shows and model.reads_words and find_spec("torch") is not None


def _encoder_method(model: LoadedModel, name: str) -> Callable[[ReadWindow], Any] | None:
    """A function that calls a method of the model's encoder on one window, without dropout; None if it has none."""
    if name not in model.shows:
        return None
    in_torch = model.in_torch()
    method = getattr(in_torch.tagger.encoder, name)

    def read(part: ReadWindow) -> Any:
        import torch

        in_torch.tagger.eval()
        with torch.inference_mode():
            return method(in_torch.batch([part.lattice]))

    return read


def _called(model: LoadedModel) -> str:
    """A description of the model for error messages."""
    if model.config is None:
        return f"this model ({model.architecture}), exported for ONNX Runtime,"
    has_switch = not model.reads_words and "use_words" in vars(model.config)
    return f"this model ({model.architecture}{' without words' if has_switch else ''})"


def _models_with(name: str) -> str:
    """The architectures whose encoders have a method."""
    from cige.models.registry import ARCHITECTURES

    if find_spec("torch") is None:  # their modules cannot be imported
        return "docs/systems.md lists them"
    return ", ".join(k for k, a in ARCHITECTURES.items() if hasattr(getattr(import_module(a.module), a.encoder), name))
