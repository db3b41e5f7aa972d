"""Instances: [CLS] A [SEP] B [SEP] out of neighbouring lines, and what the model is asked about the two parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cige.lattice.segments import segments_of
from cige.pretraining.masking import NO_GROUP
from cige.pretraining.packing import Packs, Room
from cige.pretraining.shards import Shard

SentenceTask = Literal["order", "three_way"]
NO_LABEL = -1  # the instance has one part, so there is no order to ask for
N_SENTENCE_CLASSES: dict[str, int] = {"order": 2, "three_way": 3}


@dataclass(frozen=True)
class TokenRow:
    """n tokens as a TokenBatch takes them: [CLS] A [SEP], or [CLS] A [SEP] B [SEP].

    Attributes:
        ids: int32[n], rows of the joint vocabulary.
        starts, ends: int32[n], first and last position, both inclusive; positions count pieces and special tokens.
        types: int32[n], 0 up to the first [SEP], 1 after it.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    types: np.ndarray


@dataclass(frozen=True)
class Instance:
    """What a model reads, before masking. n tokens.

    Attributes:
        row: the tokens.
        segments: int32[n], the segment of each token, NO_GROUP for [CLS] and [SEP]. Where words are left out these
            are still the segments of the whole lattice.
        words: int32[n], the word of the segmentation that each character is in; a lattice word has that of its first.
        sentence_label: "order": 0 as in the text, 1 swapped. "three_way": 0 the second part is from another document,
            1 as in the text, 2 swapped. NO_LABEL for an instance of one part.
    """

    row: TokenRow
    segments: np.ndarray
    words: np.ndarray
    sentence_label: int


@dataclass(frozen=True)
class Part:
    """Lines in a row, pieces numbered from 0.

    Attributes:
        ids, starts, lengths: int[n], as in a Shard.
        word_starts: bool[n_pieces].
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    word_starts: np.ndarray

    @classmethod
    def of_lines(cls, shard: Shard, first: int, end: int) -> Part:
        """The lines [first, end) of a shard."""
        tokens = slice(shard.line_tokens[first], shard.line_tokens[end])
        pieces = slice(shard.line_pieces[first], shard.line_pieces[end])
        return cls(
            ids=shard.ids[tokens],
            starts=shard.starts[tokens] - np.int32(pieces.start),
            lengths=shard.lengths[tokens].astype(np.int32),
            word_starts=shard.word_starts[pieces],
        )


def make_parts(
    shards: list[Shard],
    packs: list[Packs],
    *,
    shard: int,
    pack: int,
    room: Room,
    task: SentenceTask,
    rng: np.random.Generator,
) -> tuple[list[Part], int]:
    """The one or two parts of an instance in the order they are shown, and its sentence label."""
    own, chosen = shards[shard], packs[shard]
    first, end = int(chosen.firsts[pack]), int(chosen.ends[pack])
    if task == "three_way" and chosen.wants_other[pack]:
        part = Part.of_lines(own, first, end)
        other = _from_another_document(shards, shard=shard, line=first, after=part, room=room, rng=rng)
        return ([part, other], 0) if other else ([part], NO_LABEL)
    if end - first == 1:
        return [Part.of_lines(own, first, end)], NO_LABEL
    middle = int(rng.integers(first + 1, end))
    parts = [Part.of_lines(own, first, middle), Part.of_lines(own, middle, end)]
    is_swapped = int(rng.integers(2))
    label = is_swapped + (task == "three_way")
    return parts[::-1] if is_swapped else parts, label


def assemble(parts: list[Part], sentence_label: int, *, cls_id: int, sep_id: int, use_words: bool) -> Instance:
    """Join parts to an instance; without `use_words` only its characters (and word pieces) stay."""
    columns: list[list[Any]] = [[[cls_id]], [[0]], [[1]], [[0]], [[NO_GROUP]]]
    ids, starts, lengths, types, words = columns
    position, n_words = 1, 0
    for kind, part in enumerate(parts):
        n_pieces = len(part.word_starts)
        numbers = np.cumsum(part.word_starts) - 1 + n_words
        n_words = int(numbers[-1]) + 1
        ids += [part.ids, [sep_id]]
        starts += [part.starts + position, [position + n_pieces]]
        lengths += [part.lengths, [1]]
        types += [np.full(len(part.ids) + 1, kind)]
        words += [numbers[part.starts], [NO_GROUP]]
        position += n_pieces + 1
    arrays = [np.concatenate(column).astype(np.int32) for column in columns]
    is_special = arrays[-1] == NO_GROUP
    groups = np.where(is_special, NO_GROUP, segments_of(arrays[1], arrays[1] + arrays[2])).astype(np.int32)
    kept = slice(None) if use_words else arrays[2] == 1
    token_ids, token_starts, token_lengths, token_types, token_words = (column[kept] for column in arrays)
    row = TokenRow(ids=token_ids, starts=token_starts, ends=token_starts + token_lengths - 1, types=token_types)
    return Instance(row, groups[kept], token_words, sentence_label)


def _from_another_document(
    shards: list[Shard], *, shard: int, line: int, after: Part, room: Room, rng: np.random.Generator
) -> Part | None:
    """Lines of a random other document that fit behind a part, or None where none was found that does."""
    n_characters = room.n_text_characters - len(after.word_starts)
    n_tokens = room.n_text_tokens - len(after.ids)
    n_lines = np.cumsum([len(s.line_tokens) - 1 for s in shards])
    for _ in range(10):
        draw = int(rng.integers(n_lines[-1]))
        other = int(np.searchsorted(n_lines, draw, side="right"))
        first = draw - int(n_lines[other - 1] if other else 0)
        found = shards[other]
        document = int(np.searchsorted(found.document_lines, first, side="right"))
        own = int(np.searchsorted(shards[shard].document_lines, line, side="right"))
        if other == shard and document == own:
            continue
        last = int(found.document_lines[document])
        end = min(
            int(np.searchsorted(found.line_pieces[: last + 1], found.line_pieces[first] + n_characters, "right")) - 1,
            int(np.searchsorted(found.line_tokens[: last + 1], found.line_tokens[first] + n_tokens, "right")) - 1,
        )
        if end > first:
            return Part.of_lines(found, first, end)
    return None
