"""BlockingCRF: a trained CRF with the constraint that certain spans of a sentence are not entities.

This constraint concerns several tags at once, so scores of single tags cannot express it. Therefore, a blocked span
gets copies of the tags: an entity that begins at the start of the span is tagged with these copies, and the copy that
would close it at the end of the span is ruled out. The result is an ordinary CRF with more tags, so its best tags and
its probabilities are exact: those of the trained CRF given that no blocked span is an entity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cige.data.tags import split_tag
from cige.nn.crf_numpy import NumpyCRF, SegmentMarginals

_ROLES = {"O": "O", "B": "B", "M": "M", "I": "M", "E": "E", "S": "S"}
_ROLES_WITHOUT_CLOSING = {"O": "O", "B": "BS", "I": "ME"}  # BIO: the entity continues, or this tag is its last
_PLAIN = -1


class BlockingCRF(NumpyCRF):
    """The CRF of one sentence; emissions, tags and probabilities are those of the L tags of the trained CRF.

    Args:
        crf: the trained CRF over the L `tags`, which are of `scheme`.
        blocked: the blocked spans [start, end) of the sentence.
    """

    def __init__(self, crf: NumpyCRF, *, tags: Sequence[str], scheme: str, blocked: Sequence[tuple[int, int]]):
        self._trained = crf
        self._followed, self._single = _followed(blocked)
        self._slots = _slots(self._followed)
        self._n_slots = n_slots = max(self._slots, default=-1) + 1
        roles, labels, slots, exits, base = [], [], [], [], []
        for k, tag in enumerate(tags):
            prefix, label = split_tag(tag, scheme)
            for role in (_ROLES_WITHOUT_CLOSING if scheme == "BIO" else _ROLES)[prefix]:
                copies = [(_PLAIN, False)]
                if role in "BME":
                    copies += [(slot, False) for slot in range(n_slots)]
                if role == "M":
                    copies += [(slot, True) for slot in range(n_slots)]  # the last character of the span
                for slot, is_exit in copies:
                    roles.append(role)
                    labels.append(label)
                    slots.append(slot)
                    exits.append(is_exit)
                    base.append(k)
        self._role, self._slot, self._exit = np.array(roles), np.array(slots), np.array(exits)
        self._base = np.array(base)
        names = np.array(labels)
        is_open, goes_on = np.isin(self._role, ["B", "M"]), np.isin(self._role, ["M", "E"])
        next_slot = np.where(self._exit, _PLAIN, self._slot)
        into = is_open[:, None] & goes_on & (names[:, None] == names) & (next_slot[:, None] == self._slot)
        between = ~is_open[:, None] & ~goes_on
        super().__init__(
            start=np.where(goes_on, -np.inf, crf.start[base]),
            transitions=np.where(into | between, crf.transitions[np.ix_(base, base)], -np.inf),
            end=np.where(is_open, -np.inf, crf.end[base]),
        )

    @property
    def trained(self) -> NumpyCRF:
        return self._trained

    def decode(self, emissions: np.ndarray, n_chars: Sequence[int]) -> list[list[int]]:
        """Like `NumpyCRF.decode`, among the tag sequences in which no blocked span is an entity."""
        return [self._base[path].tolist() for path in super().decode(self._expanded(emissions), n_chars)]

    def marginals(self, emissions: np.ndarray, n_chars: Sequence[int]) -> SegmentMarginals:
        """Like `NumpyCRF.marginals`, given that no blocked span is an entity."""
        return _MergedMarginals(super().marginals(self._expanded(emissions), n_chars), self._base)

    def _expanded(self, emissions: np.ndarray) -> np.ndarray:
        """float64[B, T, tags with copies] from float[B, T, L]; copies are ruled out except over their blocked span."""
        out = np.asarray(emissions, np.float64)[:, :, self._base]
        role, slot = self._role, self._slot
        may_be = np.broadcast_to(slot == _PLAIN, out.shape[1:]).copy()
        for place in self._single:
            may_be[place, role == "S"] = False
        for (start, ends), own in zip(self._followed, self._slots, strict=True):
            mine, last = slot == own, ends[-1] - 1
            may_be[start, role == "B"] = mine[role == "B"]
            may_be[start + 1 : last, mine & (role == "M") & ~self._exit] = True
            may_be[last, mine & self._exit] = True
            may_be[start + 1 : last, mine & (role == "E")] = True
            for end in ends[:-1]:
                may_be[end - 1, mine & (role == "E")] = False
        out[:, ~may_be] = -np.inf
        return out


class _MergedMarginals(SegmentMarginals):
    """Marginals over tags with copies, queried by the original tags."""

    def __init__(self, marginals: SegmentMarginals, base: np.ndarray):
        vars(self).update(vars(marginals))
        self._base = base

    def tag_probabilities(self, sentence: int) -> np.ndarray:
        """Like `SegmentMarginals.tag_probabilities`, summed over the copies of each tag."""
        of_copies = super().tag_probabilities(sentence)
        tags = range(int(self._base.max()) + 1)
        return np.stack([of_copies[:, self._base == tag].sum(1) for tag in tags], axis=1)

    def probability(self, sentence: int, start: int, tags: Sequence[int]) -> float:
        """Like `SegmentMarginals.probability`, summed over the copies of each tag."""
        log_p, before = None, np.flatnonzero(self._base == tags[0])
        log_p = self._alpha[sentence, start, before]
        for place, tag in enumerate(tags[1:], start=start + 1):
            here = np.flatnonzero(self._base == tag)
            reached = np.logaddexp.reduce(log_p[:, None] + self._transitions[np.ix_(before, here)], axis=0)
            log_p, before = reached + self._emissions[sentence, place, here], here
        log_p = np.logaddexp.reduce(log_p + self._beta[sentence, start + len(tags) - 1, before])
        return float(min(1.0, np.exp(log_p - self.log_z[sentence])))


def _followed(blocked: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, list[int]]], list[int]]:
    """(start, ends) of the blocked spans of several characters, sorted, and the positions of blocked characters."""
    ends: dict[int, set[int]] = {}
    single = []
    for start, end in sorted(blocked):
        if end - start == 1:
            single.append(start)
        else:
            ends.setdefault(start, set()).add(end)
    return [(start, sorted(own)) for start, own in ends.items()], single


def _slots(followed: Sequence[tuple[int, list[int]]]) -> list[int]:
    """The number of the set of copies for each start: overlapping spans have different sets, and sets are few."""
    free_from: list[int] = []  # the position from which each set can be used again
    slots = []
    for start, ends in followed:
        slot = next((k for k, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[slot:] = [ends[-1]] if slot == len(free_from) else [ends[-1], *free_from[slot + 1 :]]
        slots.append(slot)
    return slots
