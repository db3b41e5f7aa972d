"""Results of a leaderboard that no run made."""

from __future__ import annotations

from typing import Any

import numpy as np

from cige.leaderboard.results import CellResult


def result(*, data: str = "weibo", system: str = "flat", seed: int = 1, hits: float = 0.6, **others: Any) -> CellResult:
    """A result with 200 sentences of two entities each, of which a share of `hits` is found."""
    found = np.random.default_rng([seed, int(1000 * hits)]).binomial(2, hits, 200)
    counts = [[2, 2, int(n)] for n in found]
    f1 = float(found.sum()) / 400
    values: dict[str, Any] = {
        "data": data,
        "system": system,
        "seed": seed,
        "architecture": system,
        "settings": "ab" * 32,
        "dev_f1": f1 + 0.02,
        "test_f1": f1,
        "counts": counts,
        "repeated": [0, 7],
        "user_words": {"none": f1 + 0.02, "names of the file": f1 + 0.12},
        "sentences_per_second": {"1": 100.0 * seed, "16": 400.0},
        "megabytes": 300.0,
        "n_parameters": 1_500_000,
        "best_epoch": 3,
        "seconds": 120.0,
        "work": 1_000_000,
        "weights_sha256": "cd" * 32,
        "data_sha256": {"train": "ef" * 32},
        "versions": {"cige": "0.2.0"},
        "machine": {"processor": "x86_64"},
    }
    return CellResult(**(values | others))
