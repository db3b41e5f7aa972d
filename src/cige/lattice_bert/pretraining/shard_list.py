"""ShardList: the shards to train on, each mapped into memory while it is in use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import overload

from cige.lattice_bert.pretraining.shards import Shard, check_shard, open_shard

MOST_OPEN = 1024  # a process may map 65,530 files by default (vm.max_map_count), and a shard has seven


class ShardList(Sequence[Shard]):
    """The train documents of some shards; the shards that were used last stay open.

    Args:
        folders: of the shards.
        n_held_out: how many documents at the end of each shard are held out.
        check_contents: whether to compare the checksums of a shard when it is opened for the first time.
        n_ids: number of ids of the vocabulary, which no id of a shard may reach; None does not check this.
    """

    def __init__(
        self, folders: Sequence[Path], n_held_out: Sequence[int], *, check_contents: bool, n_ids: int | None = None
    ):
        self._n_ids = n_ids
        self._folders, self._n_held_out = list(folders), list(n_held_out)
        self._unchecked = set(range(len(self._folders))) if check_contents else set()
        self._open: OrderedDict[int, Shard] = OrderedDict()

    def __len__(self) -> int:
        return len(self._folders)

    @overload
    def __getitem__(self, number: int) -> Shard: ...
    @overload
    def __getitem__(self, number: slice) -> list[Shard]: ...
    def __getitem__(self, number: int | slice) -> Shard | list[Shard]:
        """The requested shards. Raises DataError if one is damaged or cannot be read."""
        if isinstance(number, slice):
            return [self[k] for k in range(len(self))[number]]
        number = range(len(self))[number]
        if number not in self._open:
            folder = self._folders[number]
            if number in self._unchecked:
                check_shard(folder, check_contents=True)
                self._unchecked.discard(number)
            self._open[number] = open_shard(folder, n_ids=self._n_ids).parted(self._n_held_out[number])[0]
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(number)
        return self._open[number]

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_open": OrderedDict()}  # arrays that were pickled would no longer be mapped
