"""Instances: [CLS] A [SEP] B [SEP] from consecutive text, and the label of the order task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cige.lattice_bert.encoder.segments import segments_of
from cige.lattice_bert.encoder.token_inputs import TextTokens, TokenRow, join
from cige.lattice_bert.pretraining.masking import NO_GROUP
from cige.lattice_bert.pretraining.packing import Packs, Reach, Room
from cige.lattice_bert.pretraining.passage import Part, Passage, find_block, passage_of
from cige.lattice_bert.pretraining.shards import Shard

SentenceTask = Literal["order", "three_way"]  # see InstanceConfig
NO_LABEL = -1  # the instance has no two consecutive texts of one document whose order could be predicted
N_SENTENCE_CLASSES: dict[str, int] = {"order": 2, "three_way": 3}


@dataclass(frozen=True)
class Instance:
    """The input of a model before masking, with n tokens.

    Attributes:
        segments: int32[n], the segment of each token, NO_GROUP for [CLS] and [SEP]. Without words, these are still the
            segments of the whole lattice.
        words: int32[n], the word of the segmentation that contains each character; for a lattice word, that of its
            first character.
        sentence_label: for "order", 0 as in the text, 1 swapped; for "three_way", 0 if the second part is from another
            document, 1 as in the text, 2 swapped. NO_LABEL if there is nothing to predict.
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
    """The one or two parts of an instance in the order in which they are read, and its sentence label.

    If there is no order to predict and a document ends within the instance, the parts are split at that point.
    """
    passage = passage_of(shards[shard], packs[shard], pack)
    start, end, is_three_way = passage.start, passage.end, task == "three_way"
    if is_three_way and packs[shard].wants_other[pack]:
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
    """Join parts to an instance; without `use_words`, only its characters (and word pieces) are kept."""
    texts, n_words = [], 0
    for part in parts:
        numbers = np.cumsum(part.word_starts) + (n_words - 1)
        n_words = int(numbers[-1]) + 1
        n_pieces, words = len(part.word_starts), numbers[part.starts]
        texts.append(TextTokens(part.ids, part.starts, part.starts + part.lengths, n_pieces, (words,)))
    rows = join(texts, cls_id=cls_id, sep_id=sep_id)
    _, starts, ends, _, words = rows
    groups = segments_of(starts, ends + 1)
    groups[words == NO_GROUP] = NO_GROUP
    if not use_words:
        is_whole = starts == ends
        rows, groups = rows[:, is_whole], groups[is_whole]
    return Instance(TokenRow(*rows[:4]), groups, rows[4], sentence_label)


def place_in(ends: np.ndarray, number: int) -> tuple[int, int]:
    """The shard of an item, and its number there; ends, int[n]: the number of items up to the end of each shard."""
    shard = int(ends.searchsorted(number, side="right"))
    return shard, number - int(ends[shard - 1] if shard else 0)


def _from_another_document(
    shards: list[Shard], *, shard: int, passage: Passage, after: Part, room: Room, rng: np.random.Generator
) -> Part | None:
    """Text of a random other document that begins at the start of a line and fits behind a part, or None."""
    n_characters = room.n_text_characters - len(after.word_starts)
    n_tokens = room.n_text_tokens - len(after.ids)
    if min(n_characters, n_tokens) < 1:
        return None
    n_lines = np.cumsum([len(s.line_tokens) - 1 for s in shards])
    for _ in range(10):
        other, line = place_in(n_lines, int(rng.integers(n_lines[-1])))
        other_shard = shards[other]
        document = int(other_shard.document_lines.searchsorted(line, side="right"))
        first_line, last_line = other_shard.document_lines[document - 1 : document + 1].tolist()
        first, last = other_shard.line_pieces[[first_line, last_line]].tolist()
        if other == shard and first < passage.end and passage.start < last:
            continue
        start = int(other_shard.line_pieces[line])
        end_line = int(other_shard.line_pieces.searchsorted(start + n_characters))
        reach = Reach(other_shard, (line, min(last_line, end_line)))
        end = reach.preferred(start, reach.furthest(start, n_characters=n_characters, n_tokens=n_tokens))
        return Passage(other_shard, start, end).part((start, end))
    return None
