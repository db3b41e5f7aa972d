"""False positives of `cige compare` for equal systems, on simulated tables of the size of Weibo's test set.

Systems of one table have the same expected F1. A false finding is a row with p < 0.05; at most 5% of tables should have
any, however many rows they have. Beside it stands the test that cige had before (`sentences_only`), which resampled
sentences alone, one-sided, against the row that came out best, with no correction.

  python -m benchmarks significance                                    the table of docs/results.md
  python -m benchmarks significance --systems 12 --seeds 3 --lead 5    how often a lead of 5 points of F1 is found
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Annotated, Any

import numpy as np

from benchmarks.measure import told
from cige.reports.significance import all_differences

N_SENTENCES, N_EMPTY, N_ENTITIES = 270, 107, 418  # Weibo's test set
SKILL = 0.55  # gives an F1 of about 60%, as on Weibo
LEVEL = 0.05
TABLES = {"cases": "Simulated tables"}
FLAT = True


def bench(
    *,
    systems: Annotated[Sequence[int], "per table"] = (2, 12),
    seeds: Annotated[Sequence[int], "per system"] = (2, 3, 5),
    sds: Annotated[Sequence[float], "of seed effects"] = (0.0, 2.1, 2.6),
    lead: Annotated[float, "of the first system, in points of F1"] = 0.0,
    uneven: Annotated[float, "times that the last system varies over seeds"] = 1.0,
    rounds: Annotated[int, "tables"] = 2000,
) -> dict[str, Any]:
    """A row for each number of systems, of seeds, and sd of seed effects."""
    slope = points_per_skill()
    options: dict[str, Any] = {"n_tables": rounds, "slope": slope, "lead": lead, "uneven": uneven}
    cases = told(case(*facts, **options) for facts in product(systems, seeds, sds))
    return {"points_per_skill": slope, "cases": cases}


class Tables:
    """Simulated counts of systems over seeds on a test set of Weibo's size.

    Entities and sentences differ in how hard they are for all systems, each system has entities that it finds easier
    or harder than others do, each seed of a system has a skill of its own, and what is left is luck. A sentence draws
    wrong entities at its own rate, which differs from system to system.
    """

    def __init__(self, seed: int):
        self._rng = np.random.default_rng(seed)

    def draw(self, n_systems: int, n_seeds: int, *, skills: np.ndarray, seed_sds: np.ndarray) -> list[np.ndarray]:
        """One table: for each system int64[n_seeds, N_SENTENCES, 3], counts as of `sentence_counts`.

        Args:
            skills: float[n_systems] mean skill; seed_sds: float[n_systems] of skill over seeds.
        """
        rng = self._rng
        n_gold = (np.arange(N_SENTENCES) >= N_EMPTY).astype(np.int64)
        weights = rng.gamma(1, 1, N_SENTENCES - N_EMPTY)
        n_gold[N_EMPTY:] += rng.multinomial(N_ENTITIES - n_gold.sum(), weights / weights.sum())
        sentence = np.repeat(np.arange(N_SENTENCES), n_gold)
        hard = rng.normal(0, 2, N_ENTITIES) + rng.normal(0, 0.7, N_SENTENCES)[sentence]
        wrong = 0.33 * N_ENTITIES / N_SENTENCES * rng.gamma(0.7, 1 / 0.7, N_SENTENCES)
        table = []
        for k in range(n_systems):
            of_system = rng.normal(0, 0.5, N_ENTITIES)
            wrong_of_system = wrong * rng.gamma(2, 0.5, N_SENTENCES)
            shift = rng.normal(0, seed_sds[k], n_seeds) + skills[k] - SKILL
            luck = rng.logistic(0, 0.6, (n_seeds, N_ENTITIES)) + rng.logistic(0, 0.4, (n_seeds, N_ENTITIES))
            is_found = SKILL + shift[:, None] + hard + of_system + luck > 0
            n_wrong = rng.poisson(wrong_of_system * np.exp(-0.5 * shift)[:, None])
            n_found = np.stack([np.bincount(sentence, row, N_SENTENCES) for row in is_found]).astype(np.int64)
            table.append(np.stack([np.broadcast_to(n_gold, n_found.shape), n_found + n_wrong, n_found], 2))
        return table


def f1(counts: np.ndarray) -> np.ndarray:
    """F1 of [..., n, 3] counts, over the sentences."""
    totals = counts.sum(-2)
    return 2 * totals[..., 2] / np.maximum(1, totals[..., 0] + totals[..., 1])


def points_per_skill(n_tables: int = 100) -> float:
    """Points of F1 (0..100) that one unit of skill is worth near SKILL."""
    step = 0.2

    def mean_f1(skill: float) -> float:
        tables = (Tables(t).draw(1, 1, skills=np.array([skill]), seed_sds=np.zeros(1)) for t in range(n_tables))
        return float(np.mean([f1(system) for [system] in tables]))

    return 100 * (mean_f1(SKILL + step) - mean_f1(SKILL - step)) / (2 * step)


@lru_cache
def _resamples(n_resamples: int) -> np.ndarray:
    probs = np.full(N_SENTENCES, 1 / N_SENTENCES)
    return np.random.default_rng(0).multinomial(N_SENTENCES, probs, size=n_resamples).astype(float)


def sentences_only(best: np.ndarray, other: np.ndarray, *, n_resamples: int) -> float:
    """The p value that cige printed before: the share of resampled test sets on which `best` is not ahead."""
    drawn = _resamples(n_resamples)

    def mean_f1(counts: np.ndarray) -> np.ndarray:
        flat = counts.transpose(1, 0, 2).reshape(N_SENTENCES, -1).astype(float)
        totals = (drawn @ flat).reshape(n_resamples, -1, 3)
        return (2 * totals[..., 2] / np.maximum(1, totals[..., 0] + totals[..., 1])).mean(1)

    return (int((mean_f1(best) <= mean_f1(other)).sum()) + 1) / (n_resamples + 1)


def case(
    n_systems: int,
    n_seeds: int,
    seed_sd: float,
    *,
    n_tables: int,
    slope: float,
    lead: float = 0.0,
    n_resamples: int = 1000,
    uneven: float = 1.0,
    before: bool = True,
    seed: int = 0,
) -> dict[str, Any]:
    """How often tables have a finding.

    Args:
        seed_sd: of a system's F1 over seeds, in points, beside what luck on single entities adds.
        slope: `points_per_skill`.
        lead: points of F1 by which the first system is better than the others, which are equal.
        uneven: how many times as much as the others the last system varies over seeds.
        before: also measure the test that cige had before.

    Returns:
        rates, 0..1, of tables: `any p < 0.05` with a row so marked; `found` where that is a row against the better
        system (only with a lead); `intervals hold` where all intervals have the true difference in them;
        `before, any p < 0.05`. And the sd over seeds that a reader of the table sees, in points.
    """
    tables = Tables(seed)
    skills, sds = np.full(n_systems, SKILL), np.full(n_systems, seed_sd / slope)
    skills[0] += lead / slope
    sds[-1] *= uneven
    n_marked = n_held = n_found = n_before = 0
    seen = []
    for _ in range(n_tables):
        systems = tables.draw(n_systems, n_seeds, skills=skills, seed_sds=sds)
        differences = all_differences(systems, n_resamples=n_resamples)
        scores = [f1(counts) for counts in systems]
        best = int(np.argmax([x.mean() for x in scores]))
        marked = {a if b == best else b for (a, b), d in differences.items() if best in (a, b) and d.p_value < LEVEL}
        n_marked += bool(marked)
        n_found += best == 0 and bool(marked)
        truth = {(a, b): lead / 100 if a == 0 else 0.0 for a, b in differences}
        n_held += all(d.low <= truth[pair] <= d.high for pair, d in differences.items())
        if n_seeds > 1:
            seen.append(np.mean([x.var(ddof=1) for x in scores]))
        if before:
            worse = (k for k in range(n_systems) if k != best)
            n_before += any(sentences_only(systems[best], systems[k], n_resamples=n_resamples) < LEVEL for k in worse)
    result: dict[str, Any] = {"systems": n_systems, "seeds": n_seeds, "seed effects, sd in F1": seed_sd}
    result |= {"sd over seeds as seen": 100 * float(np.sqrt(np.mean(seen))) if seen else None, "tables": n_tables}
    result |= {"any p < 0.05": n_marked / n_tables, "intervals hold": n_held / n_tables}
    result |= {"before, any p < 0.05": n_before / n_tables} if before else {}
    result |= {"lead": lead, "found": n_found / n_tables} if lead else {}
    return result | ({"last system varies, times": uneven} if uneven != 1 else {})
