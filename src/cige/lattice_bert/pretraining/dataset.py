"""InstanceSet: the instances of any epoch, each determined by the seed, the epoch and its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.token_inputs import TokenRow
from cige.lattice_bert.pretraining.instances import Instance, SentenceTask, assemble, make_parts, place_in
from cige.lattice_bert.pretraining.masking import NO_GROUP, budget, corrupt, hide, select_evenly, select_within
from cige.lattice_bert.pretraining.packing import N_SPECIAL, Packs, Room, pack_shard
from cige.lattice_bert.pretraining.passage import Passage, passage_of
from cige.lattice_bert.pretraining.shards import Shard
from cige.recipes.ranges import within

CLAUSE_ENDS = frozenset("，；：,;:")


@dataclass(frozen=True)
class TokenIds:
    """The ids of special tokens, and the number of ids."""

    cls_id: int
    sep_id: int
    mask_id: int
    n_ids: int  # random tokens are drawn from 0 .. n_ids - 1
    clause_ends: tuple[int, ...] = ()  # commas, colons and semicolons that can cut a long sentence for the order task

    @classmethod
    def of(cls, vocabulary: JointVocabulary, *, use_words: bool) -> TokenIds:
        """The ids of a vocabulary, for a model with or without words."""
        return cls(
            cls_id=vocabulary.cls_id,
            sep_id=vocabulary.sep_id,
            mask_id=vocabulary.mask_id,
            n_ids=len(vocabulary) if use_words else vocabulary.n_pieces,
            clause_ends=tuple(k for k, piece in enumerate(vocabulary.pieces) if piece in CLAUSE_ENDS),
        )


@dataclass(frozen=True)
class InstanceConfig:
    """The settings of instances: what a model reads and what it predicts."""

    use_words: bool = True
    """Read words and characters; false reads characters only (BERT-our)."""
    masking: Literal["segments", "tokens", "words"] = "segments"
    """The units that are masked as a whole: segments of the lattice (MSP), single tokens (-MSP), or words of a
    segmentation (whole-word masking, for characters only)."""
    mask_prob: float = within(0.15, above=0, below=1)
    """Share of tokens to predict."""
    mask_selection: Literal["even", "within_budget"] = "even"
    """even: every unit is masked with the same probability, whatever its length, and `mask_prob` is the mean over
    instances. within_budget: no instance exceeds `mask_prob`, so long units are masked less often (released code)."""
    sentence_task: SentenceTask = "order"
    """order: predict whether the two parts are swapped (ALBERT). three_way: predict whether the second part is from
    another document, in order or swapped (released code)."""
    short_prob: float = 0.1
    """Share of instances with a random, smaller length."""


@dataclass(frozen=True)
class MaskedInstance:
    """An instance of n tokens, m of which are to be predicted.

    Attributes:
        row: the tokens that the model reads.
        positions: int64[m], positions of the tokens to predict, in ascending order.
        targets: int64[m], their ids.
        sentence_label: see Instance.
    """

    row: TokenRow
    positions: np.ndarray
    targets: np.ndarray
    sentence_label: int


class InstanceSet:
    """Every instance of every round over some shards. A round is an epoch, or with `window` a part of one.

    Args:
        room: the maximum size of an instance; the same for models with and without words, so that both read the same
            text.
        seed: determines the text, the order of its parts and what is masked, together with the epoch and the number.
        window: number of shards per round, which are drawn anew in each epoch, so that neither all text nor a plan of
            the whole epoch is needed in memory; None means all shards.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        *,
        config: InstanceConfig,
        ids: TokenIds,
        room: Room,
        seed: int,
        window: int | None = None,
    ):
        self.room = room
        self._all_shards = shards
        self._window = min(window or len(shards), len(shards))
        self.rounds_per_epoch = -(-len(shards) // self._window) if len(shards) else 1
        self._config, self._ids, self._seed = config, ids, seed
        self._round = -1
        self._shards: list[Shard] = []
        self._packs: list[Packs] = []
        self._ends = np.zeros(0, np.int64)  # number of instances up to and including each shard

    def n_tokens(self, round: int) -> np.ndarray:
        """int64[n]: number of lattice tokens of each instance of a round, including words and three special tokens but
        not second parts from another document."""
        self._open(round)
        return np.concatenate([packs.n_tokens for packs in self._packs]) + N_SPECIAL

    def passage(self, round: int, number: int) -> Passage:
        """The text of an instance, without a second part from another document."""
        self._open(round)
        shard, pack = place_in(self._ends, number)
        return passage_of(self._shards[shard], self._packs[shard], pack)

    def instance(self, round: int, number: int) -> Instance:
        """The instance before masking."""
        return self._instance(round, number, self._rng(round, number))

    def masked(self, round: int, number: int) -> MaskedInstance:
        """The masked instance that is used in training."""
        rng = self._rng(round, number)
        instance = self._instance(round, number, rng)
        selected = self._select(self.groups(instance), rng)
        ids = corrupt(instance.row.ids, selected, mask_id=self._ids.mask_id, n_ids=self._ids.n_ids, rng=rng)
        return _masked(instance, ids, selected)

    def hidden(self, round: int, number: int) -> MaskedInstance:
        """The instance with whole segments of its lattice replaced by [MASK], however masking is done in training.

        For models without words, the characters of segments are masked. They are drawn with the same random numbers, so
        models with and without words predict almost the same characters.
        """
        rng = self._rng(round, number)
        instance = self._instance(round, number, rng)
        selected = self._select(instance.segments, rng)
        return _masked(instance, hide(instance.row.ids, selected, mask_id=self._ids.mask_id), selected)

    def groups(self, instance: Instance) -> np.ndarray:
        """int[n]: the group of each token, whose tokens are masked together; NO_GROUP for [CLS] and [SEP]."""
        if self._config.masking == "segments":
            return instance.segments
        if self._config.masking == "words":
            return instance.words
        return np.where(instance.words == NO_GROUP, NO_GROUP, np.arange(len(instance.words)))

    def _instance(self, round: int, number: int, rng: np.random.Generator) -> Instance:
        self._open(round)
        shard, pack = place_in(self._ends, number)
        ids, config = self._ids, self._config
        parts, label = make_parts(
            self._shards,
            self._packs,
            shard=shard,
            pack=pack,
            room=self.room,
            task=config.sentence_task,
            clause_ends=ids.clause_ends,
            rng=rng,
        )
        return assemble(parts, label, cls_id=ids.cls_id, sep_id=ids.sep_id, use_words=config.use_words)

    def _select(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        select = select_evenly if self._config.mask_selection == "even" else select_within
        return select(groups, budget(len(groups), self._config.mask_prob), rng)

    def _rng(self, round: int, number: int) -> np.random.Generator:
        return np.random.default_rng((self._seed, round, number))

    def _open(self, round: int) -> None:
        """Pack the text of a round, unless that has been done."""
        if round == self._round:
            return
        epoch = round // self.rounds_per_epoch
        numbers = self._shards_of(round)
        other_prob = 1 / 3 if self._config.sentence_task == "three_way" else 0.0
        self._shards = [self._all_shards[number] for number in numbers]
        self._packs = [
            pack_shard(
                shard,
                self.room,
                short_prob=self._config.short_prob,
                other_prob=other_prob,
                rng=np.random.default_rng((self._seed, epoch, number, 0)),
            )
            for number, shard in zip(numbers, self._shards, strict=True)
        ]
        self._ends = np.cumsum([len(packs) for packs in self._packs])
        self._round = round

    def _shards_of(self, round: int) -> list[int]:
        """The numbers of the shards that a round reads."""
        n = len(self._all_shards)
        if self.rounds_per_epoch == 1:
            return list(range(n))
        epoch, window = divmod(round, self.rounds_per_epoch)
        order = np.random.default_rng((self._seed, epoch, n, 1)).permutation(n)
        return sorted(order[window * self._window : (window + 1) * self._window].tolist())


def _masked(instance: Instance, ids: np.ndarray, selected: np.ndarray) -> MaskedInstance:
    positions = np.flatnonzero(selected)
    targets = instance.row.ids[positions].astype(np.int64)
    return MaskedInstance(replace(instance.row, ids=ids), positions, targets, instance.sentence_label)
