"""HashTrie: all prefixes of the words in one hash table, as two arrays that are built by NumPy and mapped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.word_blob import WordBlob, load_array
from cige.lexicon.word_rules import MAX_WORD_CHARS

KEYS_FILE = "trie_keys.npy"
NUMBERS_FILE = "trie_numbers.npy"
CHAR_BITS = 21  # a code point
FIRST_STATE = 0x110000  # one more than the last code point
MOST_SLOTS = (1 << 32) - FIRST_STATE
IS_WORD, HAS_LONGER = 1, 2
FLAG_BITS = 2
MULTIPLIER = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, which spreads similar keys over the table
_LOAD = 0.67  # a search reads two slots on average; a fuller table is slower, an emptier one larger
_MOST_PROBES = 1 << 16  # of a search; tables of millions of words need a few hundred
_CHAR_MASK = (1 << CHAR_BITS) - 1
_BLOCK = 1 << 20


@dataclass(frozen=True)
class HashTrie:
    """The prefixes of two or more characters of V words, in a hash table with linear probing.

    A state represents a prefix: the code point of a single character, or FIRST_STATE + the slot of a longer prefix. To
    extend a state by a character, search for key = state << CHAR_BITS | character from slot `home(key)` on; an empty
    slot ends the search. Finding a word of n characters takes n - 1 such look-ups, and nothing is read when the table
    is opened.

    Attributes:
        keys: uint64[S], key << FLAG_BITS | flags, or 0 if the slot is empty. IS_WORD: the prefix is a word;
            HAS_LONGER: it is the beginning of a longer prefix.
        numbers: uint32[S], the number of the word, if the prefix is one.
        max_probes: the number of slots after which a search can stop.
        max_chars: length of the longest word, or 0 if there is none; no walk goes further, whatever the table says.
        n_words: number of words V.
    """

    keys: np.ndarray
    numbers: np.ndarray
    max_probes: int
    max_chars: int
    n_words: int

    @classmethod
    def build(cls, words: WordBlob) -> HashTrie:
        """Build from distinct words of two or more characters: 2.5 us per word, and at most 180 bytes per word (8.8M
        words). Raises a ValueError if a word is shorter, or occurs twice."""
        codes, starts, n_chars = _code_points(words)
        if len(words) and n_chars.min() < 2:
            raise ValueError(f"word {int(n_chars.argmin())} has less than two characters")
        levels = list(_levels(codes, starts, n_chars))
        del codes, starts
        keys, numbers, max_probes = _place(levels)
        if np.count_nonzero(keys & np.uint64(IS_WORD)) < len(words):
            raise ValueError("a word comes twice")
        max_chars = int(n_chars.max(initial=0))
        return cls(keys=keys, numbers=numbers, max_probes=max_probes, max_chars=max_chars, n_words=len(words))

    @classmethod
    def load(cls, folder: Path, *, max_probes: int, max_chars: int, n_words: int) -> HashTrie:
        """Map the files that `save` wrote; the caller must keep the three numbers."""
        keys, numbers = load_array(folder / KEYS_FILE), load_array(folder / NUMBERS_FILE)
        if keys.dtype != np.uint64 or numbers.dtype != np.uint32 or keys.ndim != 1 or keys.shape != numbers.shape:
            raise LexiconError(f"{folder}: {KEYS_FILE} does not belong to {NUMBERS_FILE}; build the lexicon again")
        if not 1 <= keys.size <= MOST_SLOTS or not keys.flags.aligned or not numbers.flags.aligned:
            raise LexiconError(f"{folder}: {KEYS_FILE} is not what cige writes; build the lexicon again")
        most_probes = min(keys.size, _MOST_PROBES)
        if not 0 <= n_words <= MOST_SLOTS:
            raise LexiconError(f"{folder}: n_words is out of range; build the lexicon again")
        if not 1 <= max_probes <= most_probes or not 0 <= max_chars <= MAX_WORD_CHARS:
            raise LexiconError(
                f"{folder}: max_probes or max_chars is out of range; expected 1 to {most_probes} and 0 to "
                f"{MAX_WORD_CHARS}; build the lexicon again"
            )
        return cls(keys=keys, numbers=numbers, max_probes=max_probes, max_chars=max_chars, n_words=n_words)

    def save(self, folder: Path) -> None:
        np.save(folder / KEYS_FILE, self.keys)
        np.save(folder / NUMBERS_FILE, self.numbers)


def home(keys: np.ndarray, n_slots: int) -> np.ndarray:
    """int64[n]: the slot where the search for each key (uint64[n]) begins."""
    high = keys * np.uint64(MULTIPLIER) >> np.uint64(32)
    return (high * np.uint64(n_slots) >> np.uint64(32)).astype(np.int64)


@dataclass
class _Level:
    """Prefixes of one length: keys, uint64[N], whose bits above CHAR_BITS are the index of the parent in the previous
    level, or the first character; flags, uint64[N]; and numbers, uint32[N]."""

    keys: np.ndarray
    flags: np.ndarray
    numbers: np.ndarray


def _levels(codes: np.ndarray, starts: np.ndarray, n_chars: np.ndarray) -> Iterator[_Level]:
    """Sort the prefixes of the words that have two characters, then three, and so on, and number the distinct ones."""
    alive = np.arange(len(starts), dtype=np.uint32)  # words that are at least this long
    parents = codes[starts].astype(np.uint64)
    length = 2
    while len(alive):
        keys = parents << np.uint64(CHAR_BITS) | codes[starts[alive] + (length - 1)]
        order = np.argsort(keys)
        keys = keys[order]
        is_new = np.empty(len(keys), dtype=bool)
        is_new[0] = True
        np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
        places = np.empty(len(keys), dtype=np.uint32)
        places[order] = np.cumsum(is_new, dtype=np.uint32) - np.uint32(1)
        keys = keys[is_new]
        ends = n_chars[alive] == length
        level = _Level(keys, np.zeros(len(keys), dtype=np.uint64), np.zeros(len(keys), dtype=np.uint32))
        level.flags[places[ends]] = IS_WORD
        level.numbers[places[ends]] = alive[ends]
        level.flags[places[~ends]] |= np.uint64(HAS_LONGER)
        yield level
        alive, parents = alive[~ends], places[~ends].astype(np.uint64)
        length += 1


def _place(levels: list[_Level]) -> tuple[np.ndarray, np.ndarray, int]:
    """Build the table of all levels; returns (keys, numbers, max_probes). `levels` is empty afterwards."""
    n_slots = int(sum(len(level.keys) for level in levels) / _LOAD) + 1
    if n_slots > MOST_SLOTS:
        raise ValueError(f"{n_slots:,} slots are more than a table can have; leave out rare words")
    table, numbers = np.zeros(n_slots, dtype=np.uint64), np.zeros(n_slots, dtype=np.uint32)
    states: np.ndarray | None = None  # of the previous level
    max_probes = 1
    while levels:
        level = levels.pop(0)
        keys = level.keys
        if states is not None:
            keys = states[keys >> np.uint64(CHAR_BITS)] << np.uint64(CHAR_BITS) | keys & np.uint64(_CHAR_MASK)
        entries = keys << np.uint64(FLAG_BITS) | level.flags
        slots = home(keys, n_slots)
        waiting = np.arange(len(slots))
        n_probes = 0
        while len(waiting):
            wanted = slots[waiting]
            is_free = table[wanted] == 0
            # If several entries have the same slot, the last one is stored.
            table[wanted[is_free]] = entries[waiting[is_free]]
            lost = table[wanted] != entries[waiting]
            waiting, wanted = waiting[lost], wanted[lost] + 1
            slots[waiting] = np.where(wanted == n_slots, 0, wanted)
            n_probes += 1
        numbers[slots] = level.numbers
        states = slots.astype(np.uint64) + np.uint64(FIRST_STATE)
        max_probes = max(max_probes, n_probes)
    return table, numbers, max_probes


def _code_points(words: WordBlob) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(uint32 code points of all words one after another, int64[V] start of each word, int64[V] its length)."""
    parts = [np.empty(0, dtype=np.uint32)]
    for begin in range(0, len(words), _BLOCK):
        block = words.blob[words.offsets[begin] : words.offsets[min(begin + _BLOCK, len(words))]]
        parts.append(np.frombuffer(block.tobytes().decode("utf-8").encode("utf-32-le"), dtype="<u4"))
    codes = np.concatenate(parts)
    ends = np.flatnonzero(codes == ord("\n"))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1] + 1])[: len(words)]
    return codes, starts, ends - starts
