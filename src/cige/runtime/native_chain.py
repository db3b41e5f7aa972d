"""NativeChain: a chain of tags in the form that native/chain.h reads, with or without copies for blocked spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cige.data.tags import split_tag
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime.native import Library, Struct
from cige.tagging.blocking import Copies, copies_of

_PREFIX = {"O": 0, "B": 1, "M": 2, "I": 2, "E": 3, "S": 4}
_MIDDLE, _LEAVES, _LAST = 1, 2, 4  # parts of a set of copies, as Chain has them
_NO_LIMIT = np.iinfo(np.int32).max


class NativeChain:
    """The struct Chain of some tags; use `of_tags`, and `with_copies` for sentences with blocked spans.

    Attributes:
        labels: the entity types, indexed by the label numbers of spans; UNKNOWN_TYPE is the last.
        struct: the struct.
    """

    def __init__(
        self,
        crf: NumpyCRF,
        *,
        parts: Sequence[tuple[str, str]],
        labels: list[str],
        refers_to: np.ndarray,
        longest: Sequence[int],
        is_open: bool,
        library: Library,
        copies: Copies | None = None,
        base: NativeChain | None = None,
    ):
        """`parts` are the prefix and label of each tag, `refers_to` int32 its column in the emissions, or its place in
        `base`."""
        self.labels = labels
        self._crf, self._parts, self._longest, self._library = crf, parts, longest, library
        # Tags with the same allowed neighbours are grouped, so that they fill whole blocks: B, then O and S, then E,
        # then M, if the scheme has them. Copies come last, since there are none at most characters.
        slots = np.full(len(parts), -1) if copies is None else copies.slot
        leaves = np.zeros(len(parts), bool) if copies is None else copies.leaves
        begins, closes = (~np.isneginf(scores) for scores in (crf.start, crf.end))
        order = np.argsort(np.where(begins, closes, 3 - closes) + 4 * (slots >= 0), kind="stable")
        self._place_of = np.argsort(order).astype(np.int32)
        block = library.constants["BLOCK"]
        n_tags, n_lanes = len(order), -(-len(order) // block) * block

        def padded(x: np.ndarray, fill: float) -> np.ndarray:
            out = np.full((*x.shape[:-1], n_lanes), fill)
            out[..., :n_tags] = x
            return out

        scores = crf.transitions[np.ix_(order, order)]
        with np.errstate(over="ignore"):
            unpadded = {"start": crf.start[order], "end": crf.end[order], "scores": scores, "into": scores.T}
            arrays = {name: padded(x, -np.inf) for name, x in unpadded.items()}
            steps = padded(np.exp(scores), 0.0), padded(np.exp(scores.T), 0.0)
        sides = {
            "best": _by_block(arrays["scores"], arrays["scores"], library),
            "forward": _by_block(steps[0], arrays["scores"], library),
            "backward": _by_block(steps[1], arrays["into"], library),
        }
        n_slots = int(slots.max(initial=-1)) + 1
        triples = zip(parts, slots, leaves, strict=True)
        role = [0 if slot < 0 else _part(prefix, left) for (prefix, _), slot, left in triples]
        integers = {
            "order": refers_to[order],
            "prefix": [_PREFIX[parts[k][0]] for k in order],
            "label": [labels.index(parts[k][1]) if parts[k][1] else -1 for k in order],
            "places": self._places(slots.tolist(), leaves.tolist(), n_slots),
            "longest": longest,
            "slot": slots[order],
            "part": np.array(role)[order],
        }
        self.struct: Struct = library.struct(
            "Chain",
            n_tags=n_tags,
            n_lanes=n_lanes,
            **arrays,
            spread=crf.spread,
            **sides,
            **{name: np.ascontiguousarray(x, np.int32) for name, x in integers.items()},
            is_open=is_open,
            n_labels=len(labels),
            n_slots=n_slots,
            n_plain=-(-int((slots < 0).sum()) // block) * block,
            base=None if base is None else base.struct,
        )
        library.model(chain=self.struct)

    @classmethod
    def of_tags(
        cls,
        crf: NumpyCRF,
        *,
        tags: Sequence[str],
        scheme: str,
        left_out: str | None,
        max_lengths: Mapping[str, int],
        library: Library,
    ) -> NativeChain:
        """The chain of a trained CRF without the tags of the label `left_out`.

        Args:
            max_lengths: label -> maximum length in characters; other labels have no limit.
        """
        parts = [split_tag(tag, scheme) for tag in tags]
        kept = np.array([k for k, (_, label) in enumerate(parts) if left_out is None or label != left_out])
        labels = sorted({parts[k][1] for k in kept} - {""}, key=lambda label: (label == UNKNOWN_TYPE, label))
        return cls(
            NumpyCRF(start=crf.start[kept], transitions=crf.transitions[np.ix_(kept, kept)], end=crf.end[kept]),
            parts=[parts[k] for k in kept],
            labels=labels,
            refers_to=kept.astype(np.int32),
            longest=[min(max_lengths.get(label, _NO_LIMIT), _NO_LIMIT) for label in labels],
            is_open=scheme == "BIO",
            library=library,
        )

    def with_copies(self, scheme: str, *, n_slots: int) -> NativeChain:
        """The chain of sentences whose blocked spans need `n_slots` sets of copies (tagging.blocking)."""
        names = [f"{prefix}-{label}" if label else prefix for prefix, label in self._parts]
        copies = copies_of(names, scheme, n_slots=n_slots)
        return NativeChain(
            copies.scores(self._crf),
            parts=list(zip(copies.role.tolist(), copies.label.tolist(), strict=True)),
            labels=self.labels,
            refers_to=self._place_of[copies.base],
            longest=self._longest,
            is_open=False,
            library=self._library,
            copies=copies,
            base=self,
        )

    def _places(self, slots: Sequence[int], leaves: Sequence[bool], n_slots: int) -> np.ndarray:
        """`places` of the struct, int32[labels, 4 + 4 * n_slots]."""
        number = {label: k for k, label in enumerate(self.labels)}
        places = np.full((len(self.labels), 1 + n_slots, 4), -1, np.int32)
        for (prefix, label), slot, left, place in zip(self._parts, slots, leaves, self._place_of, strict=True):
            if label:
                places[number[label], 1 + slot, 3 if left else _PREFIX[prefix] - 1] = place
        return places


def _part(prefix: str, leaves: bool) -> int:
    return _LEAVES if leaves else {"M": _MIDDLE, "E": _LAST}.get(prefix, 0)


def _by_block(numbers: np.ndarray, scores: np.ndarray, library: Library) -> Struct:
    """The struct Transitions of native/chain.h.

    Args:
        numbers: float64[L, n_lanes], the tag numbers of pairs; the pairs of a block are in neighbouring columns.
        scores: the same shape; -inf for forbidden pairs.
    """
    block = library.constants["BLOCK"]
    shape = (len(numbers), -1, block)
    blocks, rows = np.nonzero((scores > -np.inf).reshape(shape).any(2).T)
    first = np.searchsorted(blocks, np.arange(numbers.shape[1] // block + 1))
    own = np.ascontiguousarray(numbers.reshape(shape)[rows, blocks])
    return library.struct("Transitions", first=first.astype(np.int32), place=rows.astype(np.int32), numbers=own)
