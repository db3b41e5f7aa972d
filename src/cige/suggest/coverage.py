"""Coverage: greedily choose texts that together have many features, with diminishing gains of repeated features.

The value of a set of texts is the sum over features of a concave function of the total amount of the feature in the set
(Wei, Iyer and Bilmes, "Submodularity in Data Subset Selection and Active Learning", ICML 2015). Such a function is
monotone and submodular, so the greedy choice reaches at least 1 - 1/e of the maximum value (Nemhauser et al., 1978),
and gains that were computed earlier are upper bounds, of which only the highest have to be recomputed (Minoux, 1978).
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
    """Yield the numbers of texts, each time that of the best next text, until no accepted text remains.

    Args:
        features: for each text, feature -> amount, greater than 0; `covered` are the amounts before the first choice.
        costs: the cost of each text, greater than 0, by which its gain is divided.
        scale: the amount of a feature after which the gain of more of it is halved.
        accepts: called once for each text when it would be chosen; rejected texts are skipped.
    """
    have = dict(covered or {})

    def gain(number: int) -> float:
        features_of_text = features[number].items()
        return (
            sum(scale * log1p(amount / (scale + have.get(name, 0.0))) for name, amount in features_of_text)
            / costs[number]
        )

    # Equal gains keep the order of the texts.
    heap = [(-gain(number), number) for number in range(len(features))]
    heapq.heapify(heap)
    while heap:
        number = heap[0][1]
        now = -gain(number)
        if now > heap[0][0]:  # the gain has decreased, so another text may be better
            heapq.heapreplace(heap, (now, number))
            continue
        heapq.heappop(heap)
        if accepts(number):
            for name, amount in features[number].items():
                have[name] = have.get(name, 0.0) + amount
            yield number
