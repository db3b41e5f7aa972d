"""Tables of embeddings whose arrays do not fit each other."""

from __future__ import annotations

import numpy as np
import pytest

from cige.runtime.embedding_table import EmbeddingTable


def test_tables_that_do_not_fit_are_refused():
    parts = {"t.tuned": np.ones((3, 4), np.float32), "t.fixed": np.ones((5, 4), np.int8)}
    with pytest.raises(ValueError, match="scales"):
        EmbeddingTable.of(parts | {"t.scale": np.ones((4, 1), np.float16)}, "t")
    with pytest.raises(ValueError, match="scales"):
        EmbeddingTable.of(parts | {"t.scale": np.ones((0, 1), np.float16)}, "t")
    with pytest.raises(KeyError):
        EmbeddingTable.of(parts, "t")
