"""NativeRules: the rules of the sentences of a batch in the form that native/chain.h reads."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof

import numpy as np

from cige.lattice.lattice import Lattice
from cige.runtime.native import Struct
from cige.runtime.native_chain import NativeChain
from cige.runtime.native_crf import NativeCRF
from cige.tagging.blocking import groups_of, n_slots_of

MOST_SLOTS = 8  # sets of copies for blocked spans: chains grow with their square, and text needs one or two


class NativeRules:
    """What user words ask of some lattices: forced, blocked and typed stretches, and types that the model lacks.

    Attributes:
        struct: the struct Rules of native/chain.h; None if the lattices have no rules.
        is_left: bool of each lattice, whether it is left to tagging.decoding.
        labels: of each lattice, the labels that the label numbers of its spans mean.
    """

    def __init__(self, lattices: Sequence[Lattice], crf: NativeCRF, known: Sequence[str], *, finds_all: bool = False):
        """`known` are the model's labels; `finds_all` says that all spans above thresholds are asked for, which is
        combined with neither typed stretches nor types that the model lacks."""
        self.labels = [crf.labels] * len(lattices)
        self.is_left = [False] * len(lattices)
        self.struct: Struct | None = None
        self._n_typed = [0] * len(lattices)
        self._crf, self._known, self._finds_all = crf, known, finds_all
        self._chains: list[NativeChain] = []
        numbers: list[int] = []
        first = [-1] * len(lattices)
        for k, lattice in enumerate(lattices):
            if lattice.rules or lattice.user_labels:
                begin = len(numbers)
                self._add(k, lattice, numbers)
                first[k] = begin if len(numbers) > begin else -1
        if numbers:
            self.struct = crf.library.struct(
                "Rules",
                chains=np.array([addressof(chain.struct) for chain in self._chains], np.uintp),
                numbers=np.array(numbers, np.int32),
                first=np.array(first, np.int32),
                typed=np.zeros(sum(self._n_typed)),
            )

    @property
    def typed(self) -> list[list[float]]:
        """Of each lattice, the probability that each of its typed stretches is an entity, after C has read them."""
        values = iter(() if self.struct is None else self.struct.values["typed"].tolist())
        return [[next(values) for _ in range(n)] for n in self._n_typed]

    def _add(self, k: int, lattice: Lattice, numbers: list[int]) -> None:
        """Append what C reads of lattice k, if it has any rules, or find that it is left to Python."""
        rules, known = lattice.rules, self._known
        has_unknown = any(label not in known for _, label in lattice.labelled_words)
        if not rules and not has_unknown:
            return
        # Over closed stretches, a forced type that the model lacks may be any, even one that no word supports.
        is_open = lattice.closed and not has_unknown and any(span.label not in known for span in rules.forced)
        groups = groups_of(rules.blocked)[0] if rules.blocked else []
        n_slots = n_slots_of(groups) if rules.blocked else None
        self.is_left[k] = bool(
            (self._finds_all and (has_unknown or rules.typed)) or is_open or (n_slots or 0) > MOST_SLOTS
        )
        if self.is_left[k]:
            return
        chain = self._crf.chain(has_unknown=has_unknown, n_slots=n_slots)
        self.labels[k] = chain.labels
        if chain not in self._chains:
            self._chains.append(chain)
        sizes = (len(rules.forced), len(rules.blocked), len(rules.typed), len(groups))
        numbers += [self._chains.index(chain), *sizes, sum(self._n_typed)]
        for span in rules.forced:
            numbers += [span.start, span.end, chain.labels.index(span.label) if span.label in known else -1]
        for stretch in rules.blocked:
            numbers += stretch
        for span in rules.typed:
            numbers += [span.start, span.end]
        for group in groups:
            numbers += [group.slot, group.last, len(group.starts), len(group.open_ends)]
            numbers += [*group.starts, *group.open_ends]
        self._n_typed[k] = len(rules.typed)
