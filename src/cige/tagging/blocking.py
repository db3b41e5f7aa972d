"""BlockingCRF: a trained CRF with the constraint that certain spans of a sentence are not entities.

This constraint concerns several tags at once, so scores of single tags cannot express it. Therefore, a blocked span
gets copies of the tags: an entity that begins at the start of the span is tagged with these copies, and the copy that
would close it at the end of the span is ruled out. The result is an ordinary CRF with more tags, so its best tags and
its probabilities are exact: those of the trained CRF given that no blocked span is an entity.

In addition, no longer entity takes the place of a blocked word unless the model finds one there without the rule. The
best tags without a span are often those of the same span with a neighbouring character: 在南京市长江大桥 in place of
南京市长江大桥. A longer name that the model itself finds, as 天津大学 over a blocked 天津, stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import split_tag
from cige.lattice.lattice import Lattice
from cige.nn.crf_numpy import NumpyCRF, SegmentMarginals
from cige.tagging.edges import trimmed
from cige.tagging.prediction_model import ScoredSpan

_ROLES = {"O": "O", "B": "B", "M": "M", "I": "M", "E": "E", "S": "S"}
_ROLES_WITHOUT_CLOSING = {"O": "O", "B": "BS", "I": "ME"}  # BIO: the entity continues, or this tag is its last
PLAIN = -1


class BlockingCRF(NumpyCRF):
    """The CRF of one sentence; emissions, tags and probabilities are those of the L tags of the trained CRF.

    Args:
        crf: the trained CRF over the L `tags`, which are of `scheme`.
        blocked: the blocked spans [start, end) of the sentence.
    """

    def __init__(self, crf: NumpyCRF, *, tags: Sequence[str], scheme: str, blocked: Sequence[tuple[int, int]]):
        self._trained = crf
        self._groups, self._single = groups_of(blocked)
        self._copies = copies = copies_of(tags, scheme, n_slots=n_slots_of(self._groups))
        scores = copies.scores(crf)
        super().__init__(start=scores.start, transitions=scores.transitions, end=scores.end)

    @property
    def trained(self) -> NumpyCRF:
        return self._trained

    def decode(self, emissions: np.ndarray, n_chars: Sequence[int]) -> list[list[int]]:
        """Like `NumpyCRF.decode`, among the tag sequences in which no blocked span is an entity."""
        return [self._copies.base[path].tolist() for path in super().decode(self._expanded(emissions), n_chars)]

    def marginals(self, emissions: np.ndarray, n_chars: Sequence[int]) -> SegmentMarginals:
        """Like `NumpyCRF.marginals`, given that no blocked span is an entity."""
        return _MergedMarginals(super().marginals(self._expanded(emissions), n_chars), self._copies.base)

    def _expanded(self, emissions: np.ndarray) -> np.ndarray:
        """float64[B, T, tags with copies] from float[B, T, L]; copies are ruled out except over their blocked span."""
        copies = self._copies
        out = np.asarray(emissions, np.float64)[:, :, copies.base]
        role, slot = copies.role, copies.slot
        may_be = np.broadcast_to(slot == PLAIN, out.shape[1:]).copy()
        for place in self._single:
            may_be[place, role == "S"] = False
        for group in self._groups:
            mine, last = slot == group.slot, group.last - 1
            for start in group.starts:
                may_be[start, role == "B"] = mine[role == "B"]
            may_be[group.starts[0] + 1 : last, mine & (role == "M") & ~copies.leaves] = True
            may_be[last, mine & copies.leaves] = True
            for end in group.open_ends:
                may_be[end - 1, mine & (role == "E")] = True
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
        before = np.flatnonzero(self._base == tags[0])
        log_p = self._alpha[sentence, start, before]
        for place, tag in enumerate(tags[1:], start=start + 1):
            here = np.flatnonzero(self._base == tag)
            reached = np.logaddexp.reduce(log_p[:, None] + self._transitions[np.ix_(before, here)], axis=0)
            log_p, before = reached + self._emissions[sentence, place, here], here
        log_p = np.logaddexp.reduce(log_p + self._beta[sentence, start + len(tags) - 1, before])
        return float(min(1.0, np.exp(log_p - self.log_z[sentence])))


@dataclass(frozen=True)
class Group:
    """Blocked spans of several characters that one set of copies follows.

    Attributes:
        starts: where they begin, sorted.
        last: the last end of each of them.
        open_ends: the ends before it that are not blocked.
        slot: the number of the set. Overlapping groups have different sets, and sets are few.
    """

    starts: tuple[int, ...]
    last: int
    open_ends: tuple[int, ...]
    slot: int


def groups_of(blocked: Sequence[tuple[int, int]]) -> tuple[list[Group], list[int]]:
    """The blocked spans of several characters in groups, sorted, and the positions of blocked characters.

    Spans share a group if they have the same last end and the same open ends, as all spans within a stretch in which
    nothing may be an entity.
    """
    ends: dict[int, set[int]] = {}
    single = []
    for start, end in sorted(blocked):
        if end - start == 1:
            single.append(start)
        else:
            ends.setdefault(start, set()).add(end)
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for start, own_ends in ends.items():
        last = max(own_ends)
        n_open = last - start - 1 - len(own_ends)
        open_ends = tuple(end for end in range(start + 2, last) if end not in own_ends) if n_open else ()
        groups.setdefault((last, open_ends), []).append(start)
    in_slots: list[Group] = []
    free_from: list[int] = []  # the position from which each set can be used again
    for (last, open_ends), starts in sorted(groups.items(), key=lambda group: group[1]):
        slot = next((k for k, free in enumerate(free_from) if free <= starts[0]), len(free_from))
        free_from[slot : slot + 1] = [last]
        in_slots.append(Group(tuple(starts), last, open_ends, slot))
    return in_slots, single


def n_slots_of(groups: Sequence[Group]) -> int:
    return max((group.slot for group in groups), default=-1) + 1


@dataclass(frozen=True)
class Copies:
    """The tags of a BlockingCRF: the L tags, and `n_slots` sets of copies of them.

    Attributes:
        base: int64[n], the tag that each copies.
        role: "O", "B", "M", "E" or "S", also for the tags of BIO, which get copies that close an entity.
        label: the entity label of each, or "".
        slot: the number of its set, or PLAIN.
        leaves: whether it is the M over the last character of a blocked span, after which there are plain tags.
    """

    base: np.ndarray
    role: np.ndarray
    label: np.ndarray
    slot: np.ndarray
    leaves: np.ndarray

    def scores(self, crf: NumpyCRF) -> NumpyCRF:
        """The scores of a trained CRF, with only the transitions that a well-formed sequence with copies has."""
        base = self.base
        is_open, goes_on = np.isin(self.role, ["B", "M"]), np.isin(self.role, ["M", "E"])
        next_slot = np.where(self.leaves, PLAIN, self.slot)
        into = is_open[:, None] & goes_on & (self.label[:, None] == self.label) & (next_slot[:, None] == self.slot)
        between = ~is_open[:, None] & ~goes_on
        return NumpyCRF(
            start=np.where(goes_on, -np.inf, crf.start[base]),
            transitions=np.where(into | between, crf.transitions[np.ix_(base, base)], -np.inf),
            end=np.where(is_open, -np.inf, crf.end[base]),
        )


def copies_of(tags: Sequence[str], scheme: str, *, n_slots: int) -> Copies:
    """The copies of the `tags` of a scheme."""
    rows: list[tuple[int, str, str, int, bool]] = []
    for k, tag in enumerate(tags):
        prefix, label = split_tag(tag, scheme)
        for role in (_ROLES_WITHOUT_CLOSING if scheme == "BIO" else _ROLES)[prefix]:
            slots = [(PLAIN, False)]
            if role in "BME":
                slots += [(slot, False) for slot in range(n_slots)]
            if role == "M":
                slots += [(slot, True) for slot in range(n_slots)]
            rows += [(k, role, label, slot, leaves) for slot, leaves in slots]
    return Copies(*map(np.array, zip(*rows, strict=True)))


def without_blocked(lattice: Lattice) -> Lattice:
    """The same lattice without its blocked spans."""
    return replace(lattice, rules=replace(lattice.rules, blocked=()))


def edges_to_cut(lattice: Lattice, spans: Iterable[Span | ScoredSpan]) -> list[int]:
    """The positions, sorted, at which no entity may go on from the character before: the edges of blocked spans, except
    of those beyond which an entity of `spans` reaches that is not blocked itself. `spans` are the entities of the best
    tags of `without_blocked(lattice)`."""
    blocked = np.array(lattice.rules.blocked, np.int64).reshape(-1, 2)
    starts, ends = blocked[:, 0], blocked[:, 1]
    is_open = np.zeros(len(blocked), bool)
    for span in spans:
        edges = trimmed(lattice.text, span.start, span.end)
        if edges and edges not in lattice.rules.blocked:
            start, end = edges
            is_open |= (start < ends) & (end > starts) & ((start < starts) | (end > ends))
    places = np.unique(blocked[~is_open]).tolist()
    return [place for place in places if 0 < place < lattice.n_chars]


def cut_edges(emissions: np.ndarray, places: Sequence[int], *, tags: Sequence[str], scheme: str) -> None:
    """Rule out, in float[T, L] emissions of a sentence, that an entity goes on at these positions."""
    goes_on = np.array([split_tag(tag, scheme)[0] in ("M", "I", "E") for tag in tags])
    if places:
        emissions[np.ix_(np.array(places), np.flatnonzero(goes_on))] = -np.inf
