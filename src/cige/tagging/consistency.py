"""Read a document again with the names that were found in it as words, so that they reach their other places."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from cige.entities.entity import Entity
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UserWord, UserWords, reason_to_refuse_user_word
from cige.tagging.selection import Selection
from cige.text.normalize import normalize

SURE = 0.5
"""The lowest score of a name that is looked for elsewhere. With 0.8 and 0.9, F1 on joined development sentences was the
same or lower."""


class Reader(Protocol):
    """What reads texts with a lexicon, as `EntityFinder` describes."""

    @property
    def lexicon(self) -> Lexicon: ...

    def with_words(self, words: UserWords) -> Reader: ...

    def stream(self, texts: Iterable[str], selection: Selection, *, batch_size: int = 16) -> Iterator[list[Entity]]: ...


def read_consistently(
    reader: Reader, texts: Iterable[str], selection: Selection, *, batch_size: int
) -> Iterator[list[Entity]]:
    """The entities of each text, read as a document: again, where a name was found in one place and not in another.

    The second time its names are words of the text, with their labels. They are evidence there as a user's own words
    are, so a place where the sentence speaks against them stays as it was. Words of the user's own stay what they are.
    """
    waiting: deque[str] = deque()  # the reader reads ahead
    own = frozenset(reader.lexicon.user_words)

    def noted() -> Iterator[str]:
        for text in texts:
            waiting.append(text)
            yield text

    for entities in reader.stream(noted(), selection, batch_size=batch_size):
        text = waiting.popleft()
        words = names_to_look_for(text, entities, own=own)
        if words:
            entities = next(reader.with_words(words).stream([text], selection, batch_size=batch_size))
        yield entities


def names_to_look_for(text: str, entities: Sequence[Entity], *, own: Collection[str] = ()) -> list[UserWord]:
    """The names that were found with a score of `SURE` or more and stand elsewhere in the text, outside of entities.

    A name has the label under which it was found most, by the sum of scores.

    Args:
        entities: sorted, not overlapping.
        own: words of the user's own, normalised, which are left out.
    """
    scores: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for entity in entities:
        if entity.score >= SURE and not entity.forced:
            scores[entity.text][entity.label] += entity.score
    words = []
    for name, of_labels in scores.items():
        word = UserWord(normalize(name), max(of_labels, key=lambda label: of_labels[label]))
        if word.text in own or reason_to_refuse_user_word(word) is not None:
            continue
        if _stands_alone(name, text, entities):
            words.append(word)
    return words


def _stands_alone(name: str, text: str, entities: Sequence[Entity]) -> bool:
    """Whether the name occurs where no entity is."""
    place, k = text.find(name), 0
    while place >= 0:
        while k < len(entities) and entities[k].end <= place:
            k += 1
        if k == len(entities) or entities[k].start >= place + len(name):
            return True
        place = text.find(name, place + 1)
    return False
