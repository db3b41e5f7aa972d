"""NativeCRF: best tags, spans and their probabilities in C, with the same results as NumpyCRF."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime.native import Library, Struct, n_threads
from cige.runtime.native_chain import NativeChain

DONE, NO_MEMORY, MISSING, NO_ROOM = range(4)  # return codes of native/chain.h
SPAN = np.dtype([*((name, np.int32) for name in ("start", "end", "label", "unused")), ("score", np.float64)])


class NativeCRF:
    """A trained chain over L tags.

    Args:
        start, transitions, end: as in NumpyCRF.
        tags: the L tag names, in `scheme`. Spans of UNKNOWN_TYPE are only returned for sentences with a user word of a
            type that the model lacks, since their label depends on it (tagging.user_rules).
        max_lengths: label -> maximum length in characters; other labels have no limit.

    Attributes:
        labels: the entity types, indexed by the label numbers of spans of sentences without rules.
        struct: the struct Chain of native/chain.h for such sentences.
    """

    def __init__(
        self,
        *,
        start: np.ndarray,
        transitions: np.ndarray,
        end: np.ndarray,
        tags: list[str],
        scheme: str,
        max_lengths: Mapping[str, int],
        library: Library,
    ):
        self.library = library
        self.n_threads: int | None = None  # None: see `cige.runtime.native.n_threads`
        self._width = len(tags)
        self._crf = NumpyCRF(start=start, transitions=transitions, end=end)
        self._tags, self._scheme, self._max_lengths = tags, scheme, max_lengths
        self._chains: dict[tuple[bool, int | None], NativeChain] = {}
        plain = self.chain()
        self.labels, self.struct = plain.labels, plain.struct

    def chain(self, *, has_unknown: bool = False, n_slots: int | None = None) -> NativeChain:
        """The chain of sentences that may have spans of UNKNOWN_TYPE, and `n_slots` sets of copies for their blocked
        spans, or no such spans if it is None. It is made when it is first needed, and kept."""
        key = has_unknown, n_slots
        if key in self._chains:
            return self._chains[key]
        if n_slots is not None:
            made = self.chain(has_unknown=has_unknown).with_copies(self._scheme, n_slots=n_slots)
        else:
            made = NativeChain.of_tags(
                self._crf,
                tags=self._tags,
                scheme=self._scheme,
                left_out=None if has_unknown else UNKNOWN_TYPE,
                max_lengths=self._max_lengths,
                library=self.library,
            )
        return self._chains.setdefault(key, made)  # of threads that make it, one's is kept

    def spans(
        self,
        emissions: np.ndarray,
        n_chars: np.ndarray,
        is_closed: np.ndarray | None = None,
        families: LabelFamilies | None = None,
        rules: Struct | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The spans of the best tags of B concatenated sentences, like those of tagging.best_spans.

        Args:
            emissions: float32[sum of n_chars, L or more].
            n_chars: int32[B].
            is_closed: bool[sum of n_chars], the characters that no span may contain.
            families: labels that are reported as one; the score is the sum over the labels of a family. If it has
                thresholds, the result is all spans that reach them (see tagging.candidates) instead of the best ones,
                and their `label` is the number of their family.
            rules: the `struct` of the NativeRules of these sentences.

        Returns:
            The spans of all sentences in order, an array of SPAN with offsets in their sentences, and int32[B], the
            number of spans of each sentence.
        """
        if emissions.dtype != np.float32 or emissions.shape[1] < self._width or not emissions.flags.c_contiguous:
            raise ValueError(f"emissions {emissions.shape} of {emissions.dtype} for {self._width} tags")
        given = {"n_sentences": len(n_chars), "step": emissions.shape[1], "n_chars": n_chars, "rows": emissions}
        of_sentences = self.library.struct("Emissions", tags=None, **given)

        def read(reading: Struct) -> int:
            failed = self.library.read_chain(self.struct, of_sentences, reading)
            if failed not in (DONE, NO_ROOM):
                raise MemoryError("CRF: no memory for a work buffer; use smaller batches")
            return int(failed)

        return read_spans(
            read,
            self.library,
            n_sentences=len(n_chars),
            n_chars=len(emissions),
            n_threads=n_threads(self.n_threads),
            is_closed=is_closed,
            families=families and families.struct,
            rules=rules,
        )


class LabelFamilies:
    """Labels that are reported as one.

    Args:
        families: reported label -> the labels that are reported as it.
        thresholds: reported label -> minimum probability of its spans, above 0; None returns only the best spans.
        labels: the labels of the chain.

    Attributes:
        names: the reported labels, indexed by the label numbers of candidates.
        struct: the struct Families of native/chain.h.
    """

    def __init__(
        self,
        families: Mapping[str, Sequence[str]],
        thresholds: Mapping[str, float] | None,
        labels: Sequence[str],
        library: Library,
    ):
        self.names = list(families)
        self.finds_all = thresholds is not None
        number = {label: k for k, own in enumerate(families.values()) for label in own}
        # The last one is UNKNOWN_TYPE, which some sentences have in addition.
        family = np.array([*(number.get(label, -1) for label in labels), -1], np.int32)
        least = None if thresholds is None else np.array([thresholds[name] for name in self.names], np.float64)
        self.struct = library.struct("Families", n_families=len(self.names), family=family, threshold=least)


def read_spans(
    read: Callable[[Struct], int], library: Library, *, n_sentences: int, n_chars: int, **asked: Any
) -> tuple[np.ndarray, np.ndarray]:
    """SPAN[n] and int32[B], the number of spans of each sentence.

    Args:
        read: is given the struct Reading of native/chain.h, and again with more room if it returns NO_ROOM.
        asked: the other fields of this struct.
    """
    n_spans = np.zeros(n_sentences, np.int32)
    found = np.empty(n_chars, SPAN)  # one per character, which is always enough for the best spans
    while read(library.struct("Reading", room=len(found), spans=found, n_spans=n_spans, **asked)) == NO_ROOM:
        found = np.empty(int(n_spans.sum()), SPAN)
    return found[: n_spans.sum()], n_spans
