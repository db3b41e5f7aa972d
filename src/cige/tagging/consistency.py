"""Predict a document again with the names found in it as user words, so that all their occurrences are found."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

from cige.entities.entity import Entity
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UserWord, UserWords, reason_to_refuse_user_word
from cige.tagging.selection import Selection
from cige.text.normalize import fold_marks, normalize, normalize_word

SURE = 0.5
"""The minimum score of names whose other occurrences are searched. With 0.8 and 0.9, F1 on joined development sentences
was the same or lower."""


class Reader(Protocol):
    """A finder with a lexicon; see `EntityFinder`."""

    @property
    def lexicon(self) -> Lexicon: ...

    def with_words(self, words: UserWords) -> Reader: ...

    def stream(self, texts: Iterable[str], selection: Selection, *, batch_size: int = 16) -> Iterator[list[Entity]]: ...


def with_texts(
    texts: Iterable[str], read: Callable[[Iterable[str]], Iterator[list[Entity]]]
) -> Iterator[tuple[str, list[Entity]]]:
    """Each text with its entities; `read` is given the texts, and takes some of them ahead of its answers."""
    waiting: deque[str] = deque()

    def noted() -> Iterator[str]:
        for text in texts:
            waiting.append(text)
            yield text

    for entities in read(noted()):
        yield waiting.popleft(), entities


def read_consistently(
    reader: Reader, texts: Iterable[str], selection: Selection, *, batch_size: int
) -> Iterator[list[Entity]]:
    """The entities of each text as a document: texts where some occurrences of a name were missed are predicted again.

    In the second prediction, the names found are additional words with their labels and mode "evidence", like a user's
    own words, so the model may still decide against them where the context does. User words keep their labels and
    modes.
    """
    user_words = reader.lexicon.user_words
    read = partial(reader.stream, selection=selection, batch_size=batch_size)
    for text, entities in with_texts(texts, read):
        words = names_to_look_for(text, entities, user_words=user_words)
        if words:
            entities = next(reader.with_words(words).stream([text], selection, batch_size=batch_size))
        yield entities


def names_to_look_for(text: str, entities: Sequence[Entity], *, user_words: Collection[str] = ()) -> list[UserWord]:
    """The names found with a score of at least `SURE` that also occur elsewhere in the text, outside entities.

    Each name gets the label with the highest sum of scores.

    Args:
        entities: sorted, not overlapping.
        user_words: the user's own words, as a lexicon has them; they are left out.
    """
    text = fold_marks(normalize(text))  # as words are matched, so that 臺灣 and 台湾 are one name
    scores: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for entity in entities:
        if entity.score >= SURE and not entity.forced:
            scores[normalize_word(entity.text)][entity.label] += entity.score
    words = []
    for name, of_labels in scores.items():
        word = UserWord(name, max(of_labels, key=lambda label: of_labels[label]))
        if name in user_words or reason_to_refuse_user_word(word) is not None:
            continue
        if _stands_alone(name, text, entities):
            words.append(word)
    return words


def _stands_alone(name: str, text: str, entities: Sequence[Entity]) -> bool:
    """Whether the name also occurs outside entities."""
    place, k = text.find(name), 0
    while place >= 0:
        while k < len(entities) and entities[k].end <= place:
            k += 1
        if k == len(entities) or entities[k].start >= place + len(name):
            return True
        place = text.find(name, place + 1)
    return False
