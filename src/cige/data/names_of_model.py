"""The list of names that a model reads: take it out of the model's words, or put another list in its place.

A model with gazetteers has one lexicon, in which each word knows the kinds of names that list it. What a kind is worth
was learned in training and belongs to the kind, so a list can be replaced without training: words that only the old
list had leave the lexicon, and new ones enter without a vector of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, compress

import numpy as np

from cige.data.vocabulary import UNK, Vocabulary
from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import NamesList
from cige.lexicon.user_word import UserChanges

_FIRST_KIND = 1  # bit 0 of a word's groups says that the lexicon itself has it
_BEST_LIST = "curated"


def names_of(vocabulary: Vocabulary, lexicon: Lexicon) -> NamesList:
    """The list that a model reads. Raises a LexiconError if the model has no list of names."""
    groups_of_words = _groups(vocabulary)
    listed = groups_of_words > 1
    groups = (groups_of_words[listed] >> _FIRST_KIND).tolist()
    kinds = {
        bits: tuple(kind for k, kind in enumerate(vocabulary.gazetteers) if bits >> k & 1) for bits in sorted({*groups})
    }
    words = compress(lexicon, listed.tolist())
    return NamesList({word: kinds[bits] for word, bits in zip(words, groups, strict=True)})


def with_names(vocabulary: Vocabulary, lexicon: Lexicon, names: NamesList) -> tuple[Vocabulary, Lexicon]:
    """The words of a model with another list of names; the user words of `lexicon` are kept.

    A kind that the model does not know, such as MEDICINE or MEDICINE/hospital, is read as MEDICINE/curated, or as the
    first kind of its type if there is no such list. Raises a LexiconError if the model has no list of names, or a list
    that was made in memory has a name that cannot be one, and UnknownKind as `known_kinds` does.
    """
    old_groups = _groups(vocabulary)
    bit_of = {kind: 1 << number for number, kind in enumerate(vocabulary.gazetteers, start=_FIRST_KIND)}
    bit_of |= {kind: bit_of[known] for kind, known in known_kinds(names, vocabulary.gazetteers).items()}
    stays = (old_groups & 1).astype(bool) | (vocabulary.word_rows != UNK)
    old = list(compress(lexicon, stays.tolist()))
    known = set(old)
    new = [word for word in names.kinds if word not in known]
    word_rows = np.concatenate([vocabulary.word_rows[stays], np.full(len(new), UNK, np.int32)])
    groups = np.zeros(len(word_rows), np.int32)
    groups[: len(old)] = 1
    bits_of = {kinds: sum({bit_of[kind] for kind in kinds}) for kinds in set(map(tuple, names.kinds.values()))}
    for number, word in enumerate(chain(old, new)):
        if kinds := names.kinds.get(word):
            groups[number] |= bits_of[tuple(kinds)]
    counts = vocabulary.word_counts
    if counts is not None:
        counts = np.concatenate([counts[stays], np.zeros(len(new), counts.dtype)])
    changed = replace(vocabulary, word_rows=word_rows, word_groups=groups, word_counts=counts)
    changes = UserChanges(lexicon.user_entries, lexicon.removed_words)
    words = Lexicon.from_words([*old, *new], spaces=True)
    if words.report is not None and words.report.refused:  # what stands behind it would get the kinds of another name
        refused = words.report.refused[0]
        raise LexiconError(
            f"names: {refused.text!r} cannot be a name ({refused.reason}); expected names of two characters or more, "
            "each once and as `cige.text.normalize.normalize` returns it"
        )
    return changed, words.changed(changes)


class UnknownKind(LexiconError):
    """A list of names has a kind of a type that a model has no list of; the message begins with its file and line."""


def known_kinds(names: NamesList, known: Sequence[str]) -> dict[str, str]:
    """Each kind of a list: itself if it is one of `known`, and otherwise the curated or first kind of its type. Raises
    UnknownKind if there is none of this type."""
    return {kind: kind if kind in known else _of_same_type(kind, known, names) for kind in names.all_kinds}


def _of_same_type(kind: str, known: Sequence[str], names: NamesList) -> str:
    type_ = kind.partition("/")[0]
    of_type = [other for other in known if other.partition("/")[0] == type_]
    if not of_type:
        raise UnknownKind(f"{names.places.get(kind, 'names')}: kind {kind!r}; the model knows {', '.join(known)}")
    return next((other for other in of_type if other == f"{type_}/{_BEST_LIST}"), of_type[0])


def _groups(vocabulary: Vocabulary) -> np.ndarray:
    """int32[n_base]: the lists of each word of a model that reads a list of names."""
    if vocabulary.word_groups is None or not vocabulary.gazetteers:
        raise LexiconError(
            "this model was trained without a list of names, so it cannot read one; add the names as words "
            "(lexicon.add), or use a model with model.gazetteers"
        )
    return vocabulary.word_groups
