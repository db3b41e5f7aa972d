"""Instances: [CLS] A [SEP] B [SEP] out of consecutive text, and what the model is asked about the two parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cige.lattice.segments import segments_of
from cige.pretraining.masking import NO_GROUP
from cige.pretraining.order import find_block
from cige.pretraining.packing import Packs, Reach, Room
from cige.pretraining.passage import Part, Passage
from cige.pretraining.shards import Shard

SentenceTask = Literal["order", "three_way"]
NO_LABEL = -1  # the instance has no two consecutive texts of one document whose order could be asked for
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
            1 as in the text, 2 swapped. NO_LABEL where there is nothing to ask.
    """

    row: TokenRow
    segments: np.ndarray
    words: np.ndarray
    sentence_label: int


def make_parts(
    shards: list[Shard],
    packs: list[Packs],
    *,
    shard: int,
    pack: int,
    room: Room,
    task: SentenceTask,
    clause_ends: tuple[int, ...],
    rng: np.random.Generator,
) -> tuple[list[Part], int]:
    """The one or two parts of an instance in the order they are shown, and its sentence label.

    Where nothing can be asked about the order and a document ends within the instance, the parts meet there.
    """
    chosen = packs[shard]
    passage = Passage(shards[shard], int(chosen.starts[pack]), int(chosen.ends[pack]))
    start, end, is_three_way = passage.start, passage.end, task == "three_way"
    if is_three_way and chosen.wants_other[pack]:
        part = passage.part((start, end))
        other = _from_another_document(shards, shard=shard, passage=passage, after=part, room=room, rng=rng)
        return ([part, other], 0) if other else ([part], NO_LABEL)
    block = find_block(passage, clause_ends=clause_ends, rng=rng)
    if block is None:
        if not passage.document_ends:
            return [passage.part((start, end))], NO_LABEL
        middle = passage.document_ends[int(rng.integers(len(passage.document_ends)))]
        return [passage.part((start, middle)), passage.part((middle, end))], 0 if is_three_way else NO_LABEL
    is_swapped = int(rng.integers(2))
    if not is_swapped:
        parts = [passage.part((start, block.middle)), passage.part((block.middle, end))]
    else:
        before, after = (start, block.start), (block.end, end)
        first, second = (block.start, block.middle), (block.middle, block.end)
        parts = [passage.part(before, second), passage.part(first, after)]
    return parts, is_swapped + is_three_way


def assemble(parts: list[Part], sentence_label: int, *, cls_id: int, sep_id: int, use_words: bool) -> Instance:
    """Join parts to an instance; without `use_words` only its characters (and word pieces) stay."""
    n = 1 + sum(len(part.ids) + 1 for part in parts)
    ids, starts, lengths, types, words = columns = np.empty((5, n), np.int32)
    columns[:, 0] = cls_id, 0, 1, 0, NO_GROUP
    place, position, n_words = 1, 1, 0
    for kind, part in enumerate(parts):
        own = slice(place, place + len(part.ids))
        place += len(part.ids)
        numbers = np.cumsum(part.word_starts) + (n_words - 1)
        n_words = int(numbers[-1]) + 1
        ids[own], lengths[own], types[own] = part.ids, part.lengths, kind
        np.add(part.starts, position, out=starts[own])
        words[own] = numbers[part.starts]
        position += len(part.word_starts)
        columns[:, place] = sep_id, position, 1, kind, NO_GROUP
        place, position = place + 1, position + 1
    groups = segments_of(starts, starts + lengths)
    groups[words == NO_GROUP] = NO_GROUP
    if not use_words:
        kept = lengths == 1
        (ids, starts, lengths, types, words), groups = columns[:, kept], groups[kept]
    row = TokenRow(ids=ids, starts=starts, ends=starts + lengths - 1, types=types)
    return Instance(row, groups, words, sentence_label)


def _from_another_document(
    shards: list[Shard], *, shard: int, passage: Passage, after: Part, room: Room, rng: np.random.Generator
) -> Part | None:
    """Text of a random other document, from the start of a line on, that fits behind a part, or None where none was
    found."""
    n_characters = room.n_text_characters - len(after.word_starts)
    n_tokens = room.n_text_tokens - len(after.ids)
    if min(n_characters, n_tokens) < 1:
        return None
    n_lines = np.cumsum([len(s.line_tokens) - 1 for s in shards])
    for _ in range(10):
        draw = int(rng.integers(n_lines[-1]))
        other = int(n_lines.searchsorted(draw, side="right"))
        found, line = shards[other], draw - int(n_lines[other - 1] if other else 0)
        document = int(found.document_lines.searchsorted(line, side="right"))
        first_line, last_line = found.document_lines[document - 1 : document + 1].tolist()
        first, last = found.line_pieces[[first_line, last_line]].tolist()
        if other == shard and first < passage.end and passage.start < last:
            continue
        start = int(found.line_pieces[line])
        end_line = int(found.line_pieces.searchsorted(start + n_characters))
        reach = Reach(found, (line, min(last_line, end_line)))
        end = reach.preferred(start, reach.furthest(start, n_characters=n_characters, n_tokens=n_tokens))
        return Passage(found, start, end).part((start, end))
    return None
