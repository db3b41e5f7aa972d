"""Names: the entities of labelled sentences as a list of words, to make a gazetteer from other data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from cige.data.sentence import Sentence
from cige.errors import DataError
from cige.lexicon.user_word import UserWord
from cige.lexicon.word_rules import reason_to_refuse
from cige.text.normalize import normalize, normalize_word


def labelled_words_of(sentences: Iterable[Sentence], *, labels: Mapping[str, str] | None = None) -> list[UserWord]:
    """The words of `user_words_of`, each with its most frequent label (if there is a tie, the first by name). Those
    that differ by marks are one word, as they are to a lexicon. `labels` are new names of labels; words whose label is
    renamed to "" have no label."""
    labels_of_word: dict[str, Counter[str]] = {}
    for sentence in sentences:
        for span in sentence.spans:
            if span.parts:
                continue
            name = normalize_word(sentence.text[span.start : span.end])
            labels_of_word.setdefault(name, Counter())[(labels or {}).get(span.label, span.label)] += 1
    words = []
    for name in sorted(labels_of_word):
        if not reason_to_refuse(name, spaces=True):
            label = min(labels_of_word[name], key=lambda label: (-labels_of_word[name][label], label))
            words.append(UserWord(name, label or None))
    return words


def user_words_of(
    sentences: Iterable[Sentence], *, labels: Collection[str] | None = None, min_count: int = 1
) -> list[str]:
    """The distinct entities of labelled sentences that can be user words (two characters or more, without gaps),
    normalised and sorted. Raises a DataError if no entity has one of the labels.

    Args:
        labels: use only entities with these labels; None uses all.
        min_count: minimum number of occurrences with these labels.
    """
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for sentence in sentences:
        for span in sentence.spans:
            seen.add(span.label)
            if not span.parts and (labels is None or span.label in labels):
                counts[normalize(sentence.text[span.start : span.end])] += 1
    missing = sorted(set(labels or ()) - seen)
    if missing:
        raise DataError(f"no entity is {' or '.join(missing)}; the labels are {', '.join(sorted(seen)) or 'none'}")
    often = (name for name, count in counts.items() if count >= min_count)
    return sorted(name for name in often if not reason_to_refuse(name, spaces=True))
