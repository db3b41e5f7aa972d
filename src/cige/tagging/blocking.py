"""BlockingCRF: a trained CRF under which certain stretches of a sentence are no entities.

That a stretch is no entity says something about several tags at once, which no scores of single tags can express. So a
blocked stretch gets tags of its own: an entity that begins where it begins is followed through copies of the tags, and
the copy that would close it at the end of the stretch is ruled out. What remains is an ordinary CRF over more tags, so
its best tags and probabilities are exact: those of the trained CRF given that no blocked stretch is an entity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cige.data.tags import split_tag
from cige.nn.crf_numpy import NumpyCRF, SegmentMarginals

_ROLES = {"O": "O", "B": "B", "M": "M", "I": "M", "E": "E", "S": "S"}
_ROLES_WITHOUT_CLOSING = {"O": "O", "B": "BS", "I": "ME"}  # BIO: a tag that goes on, and one that is the last
_PLAIN = -1


class BlockingCRF(NumpyCRF):
    """The CRF of one sentence; emissions, tags and probabilities are those of the L tags of the trained CRF.

    Args:
        crf: the trained CRF over the L `tags`, which are of `scheme`.
        blocked: stretches [start, end) of the sentence.
    """

    def __init__(self, crf: NumpyCRF, *, tags: Sequence[str], scheme: str, blocked: Sequence[tuple[int, int]]):
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
                    copies += [(slot, True) for slot in range(n_slots)]  # the last character of the stretch
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

    def decode(self, emissions: np.ndarray, n_chars: Sequence[int]) -> list[list[int]]:
        """As `NumpyCRF.decode`, among the readings in which no blocked stretch is an entity."""
        return [self._base[path].tolist() for path in super().decode(self._expanded(emissions), n_chars)]

    def marginals(self, emissions: np.ndarray, n_chars: Sequence[int]) -> SegmentMarginals:
        """As `NumpyCRF.marginals`, given that no blocked stretch is an entity."""
        return _MergedMarginals(super().marginals(self._expanded(emissions), n_chars), self._base)

    def _expanded(self, emissions: np.ndarray) -> np.ndarray:
        """float64[B, T, tags with copies] of float[B, T, L]: copies only where they follow a stretch."""
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
    """Marginals over tags with copies, asked by the tags that they are copies of."""

    def __init__(self, marginals: SegmentMarginals, base: np.ndarray):
        vars(self).update(vars(marginals))
        self._base = base

    def tag_probabilities(self, sentence: int) -> np.ndarray:
        """As `SegmentMarginals.tag_probabilities`, summed over the copies of each tag."""
        of_copies = super().tag_probabilities(sentence)
        tags = range(int(self._base.max()) + 1)
        return np.stack([of_copies[:, self._base == tag].sum(1) for tag in tags], axis=1)

    def probability(self, sentence: int, start: int, tags: Sequence[int]) -> float:
        """As `SegmentMarginals.probability`, summed over the copies of each tag."""
        log_p, before = None, np.flatnonzero(self._base == tags[0])
        log_p = self._alpha[sentence, start, before]
        for place, tag in enumerate(tags[1:], start=start + 1):
            here = np.flatnonzero(self._base == tag)
            reached = np.logaddexp.reduce(log_p[:, None] + self._transitions[np.ix_(before, here)], axis=0)
            log_p, before = reached + self._emissions[sentence, place, here], here
        log_p = np.logaddexp.reduce(log_p + self._beta[sentence, start + len(tags) - 1, before])
        return float(min(1.0, np.exp(log_p - self.log_z[sentence])))


def _followed(blocked: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, list[int]]], list[int]]:
    """The blocked stretches of several characters as (start, their ends), sorted, and the places of single ones."""
    ends: dict[int, set[int]] = {}
    single = []
    for start, end in sorted(blocked):
        if end - start == 1:
            single.append(start)
        else:
            ends.setdefault(start, set()).add(end)
    return [(start, sorted(own)) for start, own in ends.items()], single


def _slots(followed: Sequence[tuple[int, list[int]]]) -> list[int]:
    """A set of copies for each start, such that those that overlap have different ones; as few as there can be."""
    free_from: list[int] = []  # where each set is free again
    slots = []
    for start, ends in followed:
        slot = next((k for k, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[slot:] = [ends[-1]] if slot == len(free_from) else [ends[-1], *free_from[slot + 1 :]]
        slots.append(slot)
    return slots
