"""Coverage: choose texts that together say much, greedily, where what was said before counts less each time.

The worth of a set of texts is the sum over features of a concave function of how much of the feature the set has (Wei,
Iyer and Bilmes, "Submodularity in Data Subset Selection and Active Learning", ICML 2015). Such a function is monotone
and submodular, so the greedy choice reaches at least 1 - 1/e of the best worth (Nemhauser et al., 1978), and gains that
were computed earlier are upper bounds, of which only the highest have to be computed again (Minoux, 1978).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log1p


def greedy(
    features: Sequence[Mapping[str, float]],
    *,
    costs: Sequence[float],
    scale: float,
    covered: Mapping[str, float] | None = None,
    accepts: Callable[[int], bool] = lambda _: True,
) -> Iterator[int]:
    """Numbers of texts, the best next one each time, until none is left that is accepted.

    Args:
        features: of each text: feature -> how much of it the text has, above 0.
        costs: of each text, above 0; the gain in worth is divided by it.
        scale: how much of a feature halves the gain of more of it.
        covered: what is there before the first choice.
        accepts: asked once for a text, when its turn comes; texts that are refused add nothing.
    """
    have = dict(covered or {})

    def gain(number: int) -> float:
        own = features[number].items()
        return sum(scale * log1p(amount / (scale + have.get(name, 0.0))) for name, amount in own) / costs[number]

    # Equal gains keep the order of the texts.
    heap = [(-gain(number), number) for number in range(len(features))]
    heapq.heapify(heap)
    while heap:
        number = heap[0][1]
        now = -gain(number)
        if now > heap[0][0]:  # less than when it was computed; another one may be better
            heapq.heapreplace(heap, (now, number))
            continue
        heapq.heappop(heap)
        if accepts(number):
            for name, amount in features[number].items():
                have[name] = have.get(name, 0.0) + amount
            yield number
