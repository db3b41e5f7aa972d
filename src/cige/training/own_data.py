"""Training on labelled sentences of one's own: the settings of a recipe that name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cige.errors import CigeError
from cige.text.counted import counted


def own_data_settings(data: str | Path, dev: str | Path | None = None) -> dict[str, Any]:
    """What changes in a recipe so that it learns from a file; paths are absolute.

    A recipe's own paths are looked for among the data sets first.

    Args:
        data: labelled sentences to learn from, in any format that cige reads.
        dev: labelled sentences that choose the epoch; None holds out the last tenth of `data`.

    Raises:
        CigeError: `data` cannot be read, or has fewer than two sentences and there is no `dev`.
    """
    settings: dict[str, Any] = {"data.dataset": None, "data.train": str(Path(data).absolute())}
    if dev is not None:
        return settings | {"data.dev": str(Path(dev).absolute()), "data.n_held_out": 0}
    from cige.data.reading import read_sentences

    n_sentences = len(read_sentences(data))
    if n_sentences < 2:
        raise CigeError(
            f"{data}: {counted(n_sentences, 'sentence')}; expected two or more, or a file of their own for --dev"
        )
    return settings | {"data.dev": None, "data.n_held_out": max(1, n_sentences // 10)}
