"""UserStore: the words that a user added, in packed layers; it is immutable, and adding a word to a million is quick.

Words that are added together make a layer. A layer that has grown to a sixteenth of the one below it is merged with it,
so there are few layers, and a word is packed again only a few times. The *place* of a word counts the words of all
layers, including removed ones; its *number* counts only the present ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from cige.lexicon.packed_words import PackedWords
from cige.lexicon.user_batch import UserBatch, normalised
from cige.lexicon.user_word import BLOCKING, EVIDENCE, MODES, Mode, UserWord
from cige.lexicon.word_blob import WordBlob
from cige.text.normalize import fold_marks, normalize_word

_RATIO = 16  # a layer has at least so many times the words of the next one
_MOST_CHANGED = 256  # words whose label or mode differs from that of their layer; more are written into layers
_IS_BLOCKING = np.array([mode in BLOCKING for mode in MODES])
_NO_PLACES = np.empty(0, np.int64)
_NO_ROWS = np.empty((0, 3), np.int32)


@dataclass(frozen=True)
class UserLayer:
    """Distinct words that no other layer has, unless it is removed there.

    Attributes:
        words: the n words.
        labels: uint8, uint16 or uint32[n], indices in `names`, the first of which is None.
        modes: uint8[n], indices in MODES.
    """

    words: PackedWords
    labels: np.ndarray
    modes: np.ndarray
    names: tuple[str | None, ...]

    @classmethod
    def build(cls, words: WordBlob, labels: np.ndarray, modes: np.ndarray, names: tuple[str | None, ...]) -> UserLayer:
        """Build from words of which some may be equal; the label and mode of the last of them hold."""
        packed, first = PackedWords.build(words)
        if first is not None:
            is_kept = first == np.arange(len(first))
            labels, modes = labels.copy(), modes.copy()
            labels[first], modes[first] = labels[:].copy(), modes[:].copy()  # of equal indices, the last holds
            labels, modes = labels[is_kept], modes[is_kept]
        return cls(packed, labels.astype(np.min_scalar_type(len(names) - 1)), modes, names)

    def __len__(self) -> int:
        return len(self.modes)

    def facts(self, number: int) -> tuple[str | None, Mode]:
        """The label and the mode of a word."""
        return self.names[self.labels[number]], MODES[self.modes[number]]


class UserStore:
    """The words that a user added, numbered 0 .. n-1 in the order in which they were added.

    Attributes:
        layers: all words, and the labels and modes with which they were added.
        changed: place -> label and mode of the words that were added again since.
        removed: int64, sorted places of removed words.
        n_of_label: label or None -> number of words with it.
        n_of_mode: mode -> number of words with it.
        has_rules: whether the mode of any word is not "evidence".
    """

    def __init__(
        self,
        layers: Sequence[UserLayer] = (),
        changed: Mapping[int, tuple[str | None, Mode]] | None = None,
        removed: np.ndarray = _NO_PLACES,
        n_of_label: Mapping[str | None, int] | None = None,
        n_of_mode: Mapping[str, int] | None = None,
    ):
        self.layers = tuple(layers)
        self.changed = changed or {}
        self.removed = removed
        self.n_of_label, self.n_of_mode = n_of_label or {}, n_of_mode or {}
        self._begins = [0, *accumulate(map(len, self.layers))]
        self.has_rules = any(mode != EVIDENCE for mode in self.n_of_mode)
        # Whether a word may be none that lattices have.
        self._has_others = any(mode in BLOCKING for mode in self.n_of_mode) or any(
            layer.words.has_single for layer in self.layers
        )

    def __reduce__(self) -> tuple[Any, ...]:
        counts = dict(self.n_of_label), dict(self.n_of_mode)
        return UserStore, (self.layers, self.changed, self.removed, *counts)

    def __len__(self) -> int:
        return self._begins[-1] - len(self.removed)

    def word(self, number: int) -> UserWord:
        """The word with this number, 0 .. n-1."""
        place = self._place_of(number)
        layer, of_layer = self._layer_of(place)
        return UserWord(layer.words[of_layer], *(self.changed.get(place) or layer.facts(of_layer)))

    def label(self, number: int) -> str | None:
        """The label of the word with this number."""
        return self._facts(self._place_of(number))[0]

    def __iter__(self) -> Iterator[UserWord]:
        removed = set(self.removed.tolist())
        for layer, begin in zip(self.layers, self._begins, strict=False):
            columns = zip(layer.words.words, layer.labels.tolist(), layer.modes.tolist(), strict=True)
            for place, (text, label, mode) in enumerate(columns, start=begin):
                if place not in removed:
                    facts = self.changed.get(place) or (layer.names[label], MODES[mode])
                    yield UserWord(text, *facts)

    def texts(self) -> Iterator[str]:
        """The words without labels and modes."""
        removed = set(self.removed.tolist())
        for layer, begin in zip(self.layers, self._begins, strict=False):
            yield from (text for place, text in enumerate(layer.words.words, start=begin) if place not in removed)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._place(word) is not None

    def nodes(self, text: str) -> np.ndarray:
        """int32[n, 3], rows (start, end, number) of the words in `text` that are nodes of lattices, in no order."""
        rows, modes = self._find(text)
        if len(rows) and self._has_others:
            rows = rows[(rows[:, 1] - rows[:, 0] > 1) & ~_IS_BLOCKING[modes]]
        if len(rows) and len(self.removed):
            rows[:, 2] -= np.searchsorted(self.removed, rows[:, 2]).astype(np.int32)
        return rows

    def rule_words(self, text: str) -> tuple[np.ndarray, list[Mode], list[str | None]]:
        """int32[n, 3], rows (start, end, place) of the words in `text` whose mode is not "evidence", in no order; their
        modes and labels."""
        rows, modes = self._find(text)
        is_rule = modes != MODES.index(EVIDENCE)
        rows, modes = rows[is_rule], modes[is_rule]
        return rows, [MODES[mode] for mode in modes.tolist()], [self._facts(k)[0] for k in rows[:, 2].tolist()]

    def with_batch(self, batch: UserBatch, *, merges: bool) -> UserStore:
        """A store with additional words; those that it already has keep their place and get the new label and mode.

        Args:
            merges: False leaves layers as they are, so the cost depends on the new words alone; more layers make
                searching slower.
        """
        if not len(batch):
            return self
        layer = UserLayer.build(batch.words, batch.labels, batch.modes, batch.names)
        changed, of_label, of_mode = dict(self.changed), Counter(self.n_of_label), Counter(self.n_of_mode)
        places = self._places(layer.words.words) if self.layers else _NO_PLACES
        is_new = places < 0
        if not is_new.all():
            for k in np.flatnonzero(~is_new).tolist():
                place = int(places[k])
                before, changed[place] = self._facts(place), layer.facts(k)
                for (label, mode), n in ((before, -1), (changed[place], 1)):
                    of_label[label] += n
                    of_mode[mode] += n
            layer = UserLayer.build(
                layer.words.words.only(is_new), layer.labels[is_new], layer.modes[is_new], layer.names
            )
        _count(layer, of_label, of_mode)
        layers = (*self.layers, layer) if len(layer) else self.layers
        store = UserStore(layers, changed, self.removed, +of_label, +of_mode)
        return store._merged() if merges else store

    def without(self, words: Collection[str]) -> UserStore:
        """A store without these words; those that it does not have are ignored."""
        return self.without_places(self.places(words))

    def without_places(self, places: np.ndarray) -> UserStore:
        """A store without the words at these places, as `places` returns them; -1 is ignored."""
        places = np.unique(places[places >= 0])
        if not len(places):
            return self
        of_label, of_mode = Counter(self.n_of_label), Counter(self.n_of_mode)
        is_changed = np.isin(places, list(self.changed))
        for place in places[is_changed].tolist():
            label, mode = self.changed[place]
            of_label.subtract([label])
            of_mode.subtract([mode])
        for layer, begin in zip(self.layers, self._begins, strict=False):
            own = places[~is_changed & (places >= begin) & (places < begin + len(layer))] - begin
            _count(layer, of_label, of_mode, own, times=-1)
        removed = np.sort(np.concatenate([self.removed, places]))
        return UserStore(self.layers, self.changed, removed, +of_label, +of_mode)._merged()

    @cached_property
    def _n_before_removed(self) -> np.ndarray:
        """int64: how many present words come before each removed one."""
        return self.removed - np.arange(len(self.removed))

    def _place_of(self, number: int) -> int:
        if not len(self.removed):
            return number
        return number + int(np.searchsorted(self._n_before_removed, number, side="right"))

    def _layer_of(self, place: int) -> tuple[UserLayer, int]:
        """The layer that has a place, and the number of its word in this layer."""
        k = bisect_right(self._begins, place) - 1
        return self.layers[k], place - self._begins[k]

    def _facts(self, place: int) -> tuple[str | None, Mode]:
        """The label and the mode of the word at a place."""
        layer, number = self._layer_of(place)
        return self.changed.get(place) or layer.facts(number)

    def _place(self, word: str) -> int | None:
        word = normalize_word(word)
        for layer, begin in zip(self.layers, self._begins, strict=False):
            number = layer.words.number(word)
            if number is not None and not self._is_removed(begin + number):
                return begin + number
        return None

    def _is_removed(self, place: int) -> bool:
        at = int(np.searchsorted(self.removed, place)) if len(self.removed) else 0
        return at < len(self.removed) and int(self.removed[at]) == place

    def places(self, words: Collection[str]) -> np.ndarray:
        """int64[n]: the place of each word (normalised), or -1 for words that are not in the store."""
        texts = normalised(words, fold_marks)
        if any("\n" in text for text in texts):
            texts = [text.replace("\n", "\ufffd") for text in texts]  # no word has either
        return self._places(WordBlob.from_words(texts)) if texts else _NO_PLACES

    def _places(self, words: WordBlob) -> np.ndarray:
        """int64[n]: the place of each word, or -1 for words that are not in the store."""
        places = np.full(len(words), -1, np.int64)
        for layer, begin in zip(self.layers, self._begins, strict=False):
            numbers = layer.words.numbers(words)
            in_layer = np.where(numbers >= 0, numbers + begin, -1)
            if len(self.removed):
                in_layer[np.isin(in_layer, self.removed)] = -1
            places = np.maximum(places, in_layer)
        return places

    def _find(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """int32[n, 3] rows (start, end, place) of all words in `text`, and uint8[n] the numbers of their modes."""
        text = fold_marks(text)
        places, modes = [], []
        for layer, begin in zip(self.layers, self._begins, strict=False):
            rows = layer.words.find(text)
            if len(rows):
                modes.append(layer.modes[rows[:, 2]])
                rows[:, 2] += begin
                places.append(rows)
        if not places:
            return _NO_ROWS, np.empty(0, np.uint8)
        rows, numbers = (places[0], modes[0]) if len(places) == 1 else (np.concatenate(places), np.concatenate(modes))
        if self.changed:
            for k, place in enumerate(rows[:, 2].tolist()):
                if place in self.changed:
                    numbers[k] = MODES.index(self.changed[place][1])
        if len(self.removed):
            at = np.minimum(np.searchsorted(self.removed, rows[:, 2]), len(self.removed) - 1)
            is_kept = self.removed[at] != rows[:, 2]
            rows, numbers = rows[is_kept], numbers[is_kept]
        return rows, numbers

    def _merged(self) -> UserStore:
        """The same words, with the layers merged that have grown too large, or all if many words were removed or
        changed."""
        first = last = len(self.layers) - 1
        while first > 0 and (self._begins[-1] - self._begins[first]) * _RATIO > len(self.layers[first - 1]):
            first -= 1
        if 4 * len(self.removed) > self._begins[-1] or (first == last and len(self.changed) > _MOST_CHANGED):
            return self._rebuilt(0)
        return self if first == last else self._rebuilt(first)

    def _rebuilt(self, first: int) -> UserStore:
        """The layers from `first` on as one, without removed words and with the labels and modes of now."""
        begin = self._begins[first]
        names: dict[str | None, int] = {None: 0}
        words, labels, modes = WordBlob.of_lines(b""), [], []
        for layer in self.layers[first:]:
            words = words + layer.words.words if len(words) else layer.words.words
            numbers = np.array([names.setdefault(name, len(names)) for name in layer.names], np.uint32)
            labels.append(numbers[layer.labels])
            modes.append(layer.modes)
        of_all, of_modes = np.concatenate(labels), np.concatenate(modes)
        for place, (label, mode) in self.changed.items():
            if place >= begin:
                of_all[place - begin] = names.setdefault(label, len(names))
                of_modes[place - begin] = MODES.index(mode)
        gone = self.removed[self.removed >= begin] - begin
        if len(gone):
            is_kept = np.ones(len(of_modes), bool)
            is_kept[gone] = False
            words, of_all, of_modes = words.only(is_kept), of_all[is_kept], of_modes[is_kept]
        layers = [*self.layers[:first]]
        if len(of_modes):
            layers.append(UserLayer.build(words, of_all, of_modes, tuple(names)))
        changed = {place: facts for place, facts in self.changed.items() if place < begin}
        return UserStore(layers, changed, self.removed[self.removed < begin], self.n_of_label, self.n_of_mode)


def _count(
    layer: UserLayer,
    of_label: Counter[str | None],
    of_mode: Counter[str],
    own: np.ndarray | slice = slice(None),
    *,
    times: int = 1,
) -> None:
    """Add the numbers of the layer's words with each label and mode, or of `own` of them, `times` 1 or -1."""
    for k, n in enumerate(np.bincount(layer.labels[own], minlength=len(layer.names)).tolist()):
        of_label[layer.names[k]] += times * n
    for k, n in enumerate(np.bincount(layer.modes[own], minlength=len(MODES)).tolist()):
        of_mode[MODES[k]] += times * n
