"""NativeCRF: best tags, spans and their probabilities in C, with the same results as NumpyCRF."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cige.data.tags import split_tag
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.runtime.native import address, n_threads

BLOCK = 8  # tags per block, as in native/chain.c
_PREFIX = {"O": 0, "B": 1, "M": 2, "I": 2, "E": 3, "S": 4}
_NO_LIMIT = np.iinfo(np.int32).max
_INTEGERS = ("start", "end", "label", "unused")
NO_ROOM = 3  # return code of native/chain.h: there are more spans than the array can hold
SPAN = np.dtype([*((name, np.int32) for name in _INTEGERS), ("score", np.float64)])


class NativeCRF:
    """A trained chain over L tags.

    Args:
        start, transitions, end: float64[L], [L, L] from (row) to (column), [L]; -inf where forbidden.
        tags: the L tag names, in `scheme`. Spans of UNKNOWN_TYPE are not returned, since their label depends on user
            words (tagging.unknown_types).
        max_lengths: label -> maximum length in characters; other labels have no limit.
        library: the compiled runtime.

    Attributes:
        labels: the entity types, indexed by the label numbers of spans.
        fields: the struct Chain of native/chain.h.
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
        self._width = len(tags)
        kept = np.array([k for k, tag in enumerate(tags) if split_tag(tag, scheme)[1] != UNKNOWN_TYPE])
        parts = [split_tag(tag, scheme) for tag in tags]
        self.labels = sorted({label for _, label in parts if label not in ("", UNKNOWN_TYPE)})
        # Tags with the same allowed neighbours are grouped, so that they fill whole blocks: B, then O and S, then E,
        # then M, if the scheme has them.
        begins, closes = (~np.isneginf(scores[kept]) for scores in (start, end))
        order = kept[np.argsort(np.where(begins, closes, 3 - closes), kind="stable")].astype(np.int32)
        n_tags, n_lanes = len(order), -(-len(order) // BLOCK) * BLOCK

        def padded(x: np.ndarray, fill: float) -> np.ndarray:
            out = np.full((*x.shape[:-1], n_lanes), fill)
            out[..., :n_tags] = x
            return out

        scores = transitions[np.ix_(order, order)]
        with np.errstate(over="ignore"):
            arrays = [padded(start[order], -np.inf), padded(end[order], -np.inf), padded(scores, -np.inf)]
            arrays += [padded(scores.T, -np.inf)]
            steps = padded(np.exp(scores), 0.0), padded(np.exp(scores.T), 0.0)
        sides = [_by_block(arrays[2], arrays[2]), _by_block(steps[0], arrays[2]), _by_block(steps[1], arrays[3])]
        place_of = {tags[k]: place for place, k in enumerate(order.tolist())}
        middle = "M" if scheme == "BMES" else "I"
        places = [place_of.get(f"{part}-{label}", -1) for label in self.labels for part in ("B", middle, "E", "S")]
        label = [self.labels.index(parts[k][1]) if parts[k][1] else -1 for k in order]
        integers = [
            order,
            [_PREFIX[parts[k][0]] for k in order],
            label,
            places,
            [min(max_lengths.get(label, _NO_LIMIT), _NO_LIMIT) for label in self.labels],
        ]
        self._kept = [*arrays, *(x for side in sides for x in side)]
        self._kept += [np.ascontiguousarray(x, np.int32) for x in integers]
        self.fields = np.array(
            [n_tags, n_lanes, *map(address, self._kept), scheme == "BIO", len(self.labels)], np.int64
        )
        self._n_threads = n_threads()

    def spans(
        self,
        emissions: np.ndarray,
        n_chars: np.ndarray,
        is_closed: np.ndarray | None = None,
        families: LabelFamilies | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The spans of the best tags of B concatenated sentences, like those of tagging.best_spans.

        Args:
            emissions: float32[sum of n_chars, L or more].
            n_chars: int32[B].
            is_closed: bool[sum of n_chars], the characters that no span may contain.
            families: labels that are reported as one; the score is the sum over the labels of a family. If it has
                thresholds, the result is all spans that reach them (see tagging.candidates) instead of the best ones,
                and their `label` is the number of their family.

        Returns:
            The spans of all sentences in order, an array of SPAN with offsets in their sentences, and int32[B], the
            number of spans of each sentence.
        """
        if emissions.dtype != np.float32 or emissions.shape[1] < self._width or not emissions.flags.c_contiguous:
            raise ValueError(f"emissions {emissions.shape} of {emissions.dtype} for {self._width} tags")
        n_spans, tags = np.zeros(len(n_chars), np.int32), np.empty(len(emissions), np.int32)
        closed = None if is_closed is None else address(is_closed)
        chosen = None if families is None else address(families.fields)

        def read(spans: np.ndarray) -> int:
            sizes = np.array([len(n_chars), emissions.shape[1], self._n_threads, len(spans)], np.int64)
            inputs = map(address, (self.fields, sizes, n_chars, emissions))
            failed = self._library.read_chain(*inputs, closed, chosen, *map(address, (tags, spans, n_spans)))
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
        family = np.array([number.get(label, -1) for label in labels], np.int32)
        least = None if thresholds is None else np.array([thresholds[name] for name in self.names], np.float64)
        self._kept = family, least
        self.fields = np.array([len(self.names), address(family), 0 if least is None else address(least)], np.int64)


def with_room(read: Callable[[np.ndarray], int], n_chars: int, n_spans: np.ndarray) -> np.ndarray:
    """SPAN[n]: the spans that `read` writes; it is called again with a larger array if it returns NO_ROOM."""
    found = np.empty((n_chars, SPAN.itemsize), np.uint8)  # one per character, which is always enough for the best spans
    while read(found) == NO_ROOM:
        found = np.empty((int(n_spans.sum()), SPAN.itemsize), np.uint8)
    return found[: n_spans.sum()].view(SPAN)[:, 0]


def _by_block(numbers: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The struct Transitions of native/chain.h.

    Args:
        numbers: float64[L, n_lanes], the tag numbers of pairs; the pairs of a block are in neighbouring columns.
        scores: the same shape; -inf for forbidden pairs.
    """
    shape = (len(numbers), -1, BLOCK)
    blocks, rows = np.nonzero((scores > -np.inf).reshape(shape).any(2).T)
    first = np.searchsorted(blocks, np.arange(numbers.shape[1] // BLOCK + 1))
    own = np.ascontiguousarray(numbers.reshape(shape)[rows, blocks])
    return first.astype(np.int32), rows.astype(np.int32), own
