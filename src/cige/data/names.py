"""Names: the entities of labelled sentences as a list of words, which is how a gazetteer is made from other data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from cige.data.sentence import Sentence
from cige.errors import DataError
from cige.lexicon.word_rules import reason_to_refuse
from cige.text.normalize import normalize


def user_words_of(
    sentences: Iterable[Sentence], *, labels: Collection[str] | None = None, min_count: int = 1
) -> list[str]:
    """The distinct names in labelled sentences that can be user words (two characters or more), normalised and sorted.

    Args:
        labels: only entities with one of these labels; None takes all.
        min_count: only names that are labelled so at least this often.

    Raises:
        DataError: no entity has one of the labels.
    """
    found: Counter[str] = Counter()
    seen: set[str] = set()
    for sentence in sentences:
        for span in sentence.spans:
            seen.add(span.label)
            if labels is None or span.label in labels:
                found[normalize(sentence.text[span.start : span.end])] += 1
    missing = sorted(set(labels or ()) - seen)
    if missing:
        raise DataError(f"no entity is {' or '.join(missing)}; the labels are {', '.join(sorted(seen)) or 'none'}")
    often = (name for name, count in found.items() if count >= min_count)
    return sorted(name for name in often if not reason_to_refuse(name, spaces=True))
