"""NativeCRF: best tags, spans and their probabilities in C, with the same results as NumpyCRF."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime.native import address, n_threads
from cige.runtime.native_chain import NativeChain

_INTEGERS = ("start", "end", "label", "unused")
NO_ROOM = 3  # return code of native/chain.h: there are more spans than the array can hold
SPAN = np.dtype([*((name, np.int32) for name in _INTEGERS), ("score", np.float64)])


class NativeCRF:
    """A trained chain over L tags.

    Args:
        start, transitions, end: float64[L], [L, L] from (row) to (column), [L]; -inf where forbidden.
        tags: the L tag names, in `scheme`. Spans of UNKNOWN_TYPE are only returned for sentences with a user word of a
            type that the model lacks, since their label depends on it (tagging.unknown_types).
        max_lengths: label -> maximum length in characters; other labels have no limit.
        library: the compiled runtime.

    Attributes:
        labels: the entity types, indexed by the label numbers of spans of sentences without rules.
        fields: the struct Chain of native/chain.h for such sentences.
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
        library: ctypes.CDLL,
    ):
        self._library = library
        self.n_threads: int | None = None  # None: see `cige.runtime.native.n_threads`
        self._width = len(tags)
        self._crf = NumpyCRF(start=start, transitions=transitions, end=end)
        self._tags, self._scheme, self._max_lengths = tags, scheme, max_lengths
        self._chains: dict[tuple[bool, int | None], NativeChain] = {}
        plain = self.chain()
        self.labels, self.fields = plain.labels, plain.fields

    def chain(self, *, has_unknown: bool = False, n_slots: int | None = None) -> NativeChain:
        """The chain of sentences that may have spans of UNKNOWN_TYPE, and `n_slots` sets of copies for their blocked
        spans, or no such spans if it is None. It is made when it is first needed, and kept."""
        found = self._chains.get((has_unknown, n_slots))
        if found is None:
            if n_slots is None:
                left_out = None if has_unknown else UNKNOWN_TYPE
                about = {"tags": self._tags, "scheme": self._scheme, "max_lengths": self._max_lengths}
                found = NativeChain.of_tags(self._crf, left_out=left_out, **about)  # type: ignore[arg-type]
            else:
                found = self.chain(has_unknown=has_unknown).with_copies(self._scheme, n_slots=n_slots)
            found = self._chains.setdefault((has_unknown, n_slots), found)  # of threads that make it, one's is kept
        return found

    def spans(
        self,
        emissions: np.ndarray,
        n_chars: np.ndarray,
        is_closed: np.ndarray | None = None,
        families: LabelFamilies | None = None,
        rules: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The spans of the best tags of B concatenated sentences, like those of tagging.best_spans.

        Args:
            emissions: float32[sum of n_chars, L or more].
            n_chars: int32[B].
            is_closed: bool[sum of n_chars], the characters that no span may contain.
            families: labels that are reported as one; the score is the sum over the labels of a family. If it has
                thresholds, the result is all spans that reach them (see tagging.candidates) instead of the best ones,
                and their `label` is the number of their family.
            rules: the `fields` of the NativeRules of these sentences.

        Returns:
            The spans of all sentences in order, an array of SPAN with offsets in their sentences, and int32[B], the
            number of spans of each sentence.
        """
        if emissions.dtype != np.float32 or emissions.shape[1] < self._width or not emissions.flags.c_contiguous:
            raise ValueError(f"emissions {emissions.shape} of {emissions.dtype} for {self._width} tags")
        n_spans, tags = np.zeros(len(n_chars), np.int32), np.empty(len(emissions), np.int32)
        closed = None if is_closed is None else address(is_closed)
        chosen = None if families is None else address(families.fields)
        held = None if rules is None else address(rules)

        def read(spans: np.ndarray) -> int:
            sizes = np.array([len(n_chars), emissions.shape[1], n_threads(self.n_threads), len(spans)], np.int64)
            inputs = map(address, (self.fields, sizes, n_chars, emissions))
            failed = self._library.read_chain(*inputs, closed, chosen, *map(address, (tags, spans, n_spans)), held)
            if failed not in (0, NO_ROOM):
                raise MemoryError("CRF: no memory for a work buffer; use smaller batches")
            return int(failed)

        return with_room(read, len(emissions), n_spans), n_spans


class LabelFamilies:
    """Labels that are reported as one.

    Args:
        families: reported label -> the labels that are reported as it.
        thresholds: reported label -> minimum probability of its spans, greater than 0; None returns only the best
            spans.
        labels: the labels of the chain.

    Attributes:
        names: the reported labels, indexed by the label numbers of candidates.
        fields: the struct Families of native/chain.h.
    """

    def __init__(
        self, families: Mapping[str, Sequence[str]], thresholds: Mapping[str, float] | None, labels: Sequence[str]
    ):
        self.names = list(families)
        self.finds_all = thresholds is not None
        number = {label: k for k, own in enumerate(families.values()) for label in own}
        # The last one is UNKNOWN_TYPE, which some sentences have in addition.
        family = np.array([*(number.get(label, -1) for label in labels), -1], np.int32)
        least = None if thresholds is None else np.array([thresholds[name] for name in self.names], np.float64)
        self._kept = family, least
        self.fields = np.array([len(self.names), address(family), 0 if least is None else address(least)], np.int64)


def with_room(read: Callable[[np.ndarray], int], n_chars: int, n_spans: np.ndarray) -> np.ndarray:
    """SPAN[n]: the spans that `read` writes; it is called again with a larger array if it returns NO_ROOM."""
    found = np.empty((n_chars, SPAN.itemsize), np.uint8)  # one per character, which is always enough for the best spans
    while read(found) == NO_ROOM:
        found = np.empty((int(n_spans.sum()), SPAN.itemsize), np.uint8)
    return found[: n_spans.sum()].view(SPAN)[:, 0]
