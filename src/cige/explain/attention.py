"""What a model attends to: the word sets of each character, and attention as maps of who looked at what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from cige.errors import ModelError
from cige.lexicon.lexicon import LexiconSnapshot
from cige.tagging.prediction import PredictionModel
from cige.tagging.windows import LatticeWord, ReadWindow, lattice_word

WORDS_READ = "read from words"


@dataclass(frozen=True)
class SetMember:
    """A word in one of a character's sets, or None for the character itself; `weight`, 0..1, is of all four sets."""

    word: LatticeWord | None
    weight: float


@dataclass(frozen=True)
class CharacterSets:
    """The words that begin at a character (B), run through it (M), end there (E) or are it (S).

    Attributes:
        place: of the character, in code points of the user's text.
        char: the character.
        sets: "B", "M", "E", "S" -> members, the heaviest first; S holds the character itself.
        none: the weights, 0..1, of the empty sets among B, M and E, which count as one special word. With them, the
            weights of all members sum to 1.
    """

    place: int
    char: str
    sets: dict[str, list[SetMember]]
    none: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """start, char, a list of words for each set, and none."""
        listed = {name: [self._member(member) for member in members] for name, members in self.sets.items()}
        return {"start": self.place, "char": self.char} | listed | {"none": _rounded(self.none)}

    def _member(self, member: SetMember) -> dict[str, Any]:
        word = member.word or LatticeWord(self.place, self.place + 1, self.char, False)
        return vars(word) | {"is_character": member.word is None, "weight": round(member.weight, 4)}


@dataclass(frozen=True)
class AttentionMap:
    """Attention of everything that asks (rows) to everything that answers (columns), in one window of a text.

    Attributes:
        name: what attends.
        asking, answering: "characters", "word sets" (those of each character) or "words" (of the lattice).
        start: offset of the window's first character in the user's text.
        rows, columns: what stands at each row and column: a character, or a word.
        heads: float32[H, rows, columns], 0..1, for each head. A row sums to 1; in a map that reads words to less,
            as what is missing went to characters.
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

    def to_dict(self) -> dict[str, Any]:
        """Every field as JSON can hold it."""
        return vars(self) | {"heads": np.round(self.heads.astype(float), 4).tolist()}


def read_word_sets(
    model: PredictionModel, parts: Sequence[ReadWindow], snapshot: LexiconSnapshot
) -> list[CharacterSets]:
    """The word sets of each character of a text, as the model weighs them.

    Raises:
        ModelError: the model has none; those that have are named.
    """
    hook = _hook(model, "word_sets")
    if hook is None or not reads_words(model):
        raise ModelError(f"{_called(model)} has no word sets; models that have: {_with_hook('word_sets')}")
    found = []
    for part in parts:
        window, sets = part.window, _call(model, hook, part)
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
            found.append(CharacterSets(window.start + k, part.lattice.text[k], members, empty))
    return found


def read_maps(model: PredictionModel, parts: Sequence[ReadWindow], snapshot: LexiconSnapshot) -> list[AttentionMap]:
    """The model's attention in each window of a text, and if it reads words, how much of each a character took.

    Raises:
        ModelError: the model has neither; those that have are named.
    """
    hook, words = _hook(model, "attention_maps"), reads_words(model)
    if hook is None and not words:
        raise ModelError(
            f"{_called(model)} reads no words and has no attention to draw; models with attention maps: "
            f"{_with_hook('attention_maps')}; every model that reads words shows how much of them it read"
        )
    found = []
    for part in parts:
        start, chars = part.window.start, list(part.lattice.text)
        n_chars = len(chars)
        for name, asking, answering, weights in _call(model, hook, part).named() if hook else ():
            heads = weights[:, 0, :n_chars, :n_chars].float().cpu().numpy()
            found.append(AttentionMap(name, asking, answering, start, chars, chars, heads))
        if words:
            listed = [lattice_word(k, part, snapshot).text for k in range(part.lattice.n_words)]
            read = model.read_words([part.lattice])[1][:, :n_chars, : len(listed)]
            found.append(AttentionMap(WORDS_READ, "characters", "words", start, chars, listed, read))
    return found


def has_word_sets(model: PredictionModel) -> bool:
    """Whether the model gathers words in sets, as a soft lexicon does."""
    return _hook(model, "word_sets") is not None and reads_words(model)


def reads_words(model: PredictionModel) -> bool:
    """Whether words are an input of the model at all; an exported one is taken to read them."""
    tagger = getattr(model, "tagger", None)
    return tagger is None or tagger.encoder.embeddings.word is not None


def _hook(model: PredictionModel, name: str) -> Callable[[Any], Any] | None:
    """The method of the model's encoder, if its architecture has it."""
    return getattr(getattr(getattr(model, "tagger", None), "encoder", None), name, None)


def _call(model: Any, hook: Callable[[Any], Any], part: ReadWindow) -> Any:
    """What the hook says of one window alone, with no dropout."""
    import torch

    model.tagger.eval()
    with torch.inference_mode():
        return hook(model.batch([part.lattice]))


def _called(model: Any) -> str:
    name = model.architecture
    exported = "" if hasattr(model, "tagger") else ", exported for ONNX Runtime,"
    twin = " without words" if not exported and not reads_words(model) and "use_words" in vars(model.config) else ""
    return f"this model ({name}{twin}){exported}"


def _with_hook(name: str) -> str:
    from cige.models.registry import ARCHITECTURES

    return ", ".join(k for k, a in ARCHITECTURES.items() if hasattr(getattr(import_module(a.module), a.encoder), name))


def _rounded(weights: dict[str, float]) -> dict[str, float]:
    return {name: round(weight, 4) for name, weight in weights.items()}
