"""Select the sentences of a text file to label next, in one pass and in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, tee
from typing import Literal, get_args

from cige.suggest.coverage import greedy
from cige.suggest.doubts import doubts_of, total
from cige.suggest.pool import Candidate, Pool
from cige.suggest.texts import NearDuplicates, bigrams, folded, shuffled, text_key
from cige.tagging.finder import EntityFinder
from cige.tagging.selection import Request

Strategy = Literal["both", "uncertainty", "diversity", "random"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

READ_AT_ONCE = 2000  # texts per block; the state of a selection can be saved between blocks
POOL_PER_SENTENCE, SMALLEST_POOL = 20, 2000  # candidates per sentence to choose, and their minimum number
SMALLEST_SAMPLE = 20_000  # minimum sample of a file, for `diversity`
DOUBT_SCALE = 0.1  # per bigram: about the amount of one uncertain entity of a few characters
COUNT_SCALE = 1.0  # per bigram: the amount of one occurrence in a sentence


@dataclass(frozen=True)
class Settings:
    """How sentences are chosen.

    Attributes:
        n: number of sentences.
        strategy: "uncertainty" chooses the sentences with the highest expected number of errors of the model,
            "diversity" those that together cover the common bigrams, "both" those that together cover the uncertain
            spans, and "random" random ones.
        per: unit of annotation cost: sentences of any length, or characters.
        min_chars, max_chars: minimum and maximum length of sentences; others are skipped.
        seed: seed of the samples of "random" and "diversity", and of the order of ties.
    """

    n: int
    strategy: Strategy = "both"
    per: Literal["sentence", "character"] = "sentence"
    min_chars: int = 5
    max_chars: int = 200
    seed: int = 1

    @property
    def reads_doubts(self) -> bool:
        """Whether the strategy needs the predictions of a model for every sentence."""
        return self.strategy in ("both", "uncertainty")

    @property
    def pool_size(self) -> int:
        """The number of candidates that are kept while the file is read."""
        smallest = SMALLEST_SAMPLE if self.strategy == "diversity" else SMALLEST_POOL
        return max(smallest, POOL_PER_SENTENCE * self.n)


@dataclass(frozen=True)
class Suggestion:
    """A sentence to label.

    Attributes:
        text: the sentence, without whitespace at its ends.
        line: its line in the file, from 1.
        rank: its rank, from 1 for the best.
        uncertainty: expected number of errors of the model; None if no model is used.
    """

    text: str
    line: int
    rank: int
    uncertainty: float | None


class Selector:
    """Reads sentences and keeps the best candidates.

    Args:
        finder: the model; required for "both" and "uncertainty".
        request: the labels to consider.
        labelled: texts that are already labelled. They are not suggested again, and their features count as covered.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        finder: EntityFinder | None = None,
        request: Request | None = None,
        labelled: Iterable[str] = (),
    ):
        if settings.strategy not in STRATEGIES:
            raise ValueError(f"given strategy={settings.strategy!r}; expected one of {', '.join(STRATEGIES)}")
        if settings.reads_doubts and finder is None:
            raise ValueError(f"strategy {settings.strategy!r} needs a model")
        self.settings = settings
        self.pool = Pool(settings.pool_size)
        self.n_read = self.n_fitting = 0
        self._finder, self._request = finder, request or Request()
        self._labelled = list(dict.fromkeys(text.strip() for text in labelled))
        self._known = {text_key(text) for text in self._labelled}

    def read(self, texts: Iterable[str], *, on_block: Callable[[Selector], None] = lambda _: None) -> None:
        """Read texts, one per line; the first `n_read` texts, which were read before, are skipped.

        Args:
            on_block: called after every READ_AT_ONCE texts.
        """
        lines = islice(iter(texts), self.n_read, None)
        while block := list(islice(lines, READ_AT_ONCE)):
            n_fitting = 0
            for candidate in self._doubted(self._fitting(block)):
                worth = total(candidate.doubts) / self._cost(candidate) if self.settings.reads_doubts else 0.0
                self.pool.offer(worth, shuffled(candidate.key, self.settings.seed), candidate)
                n_fitting += 1
            # Only complete blocks count; an interrupted block is read again, with the same result.
            self.n_fitting += n_fitting
            self.n_read += len(block)
            on_block(self)

    def _fitting(self, block: Collection[str]) -> Iterator[Candidate]:
        low, high = self.settings.min_chars, self.settings.max_chars
        for line, text in enumerate(map(str.strip, block), self.n_read + 1):
            if low <= len(text) <= high and (key := text_key(text)) not in self._known:
                yield Candidate(text, key, line)

    def _doubted(self, candidates: Iterator[Candidate]) -> Iterator[Candidate]:
        if not self.settings.reads_doubts:
            yield from candidates
            return
        assert self._finder is not None
        candidates, read = tee(candidates)
        doubts = doubts_of(self._finder, (candidate.text for candidate in read), self._request)
        for candidate, doubts_of_text in zip(candidates, doubts, strict=True):
            yield Candidate(candidate.text, candidate.key, candidate.line, tuple(doubts_of_text))

    def _cost(self, candidate: Candidate) -> float:
        return 1.0 if self.settings.per == "sentence" else float(len(candidate.text))

    def chosen(self) -> list[Suggestion]:
        """The best `n` of the sentences read, or fewer if there are not enough."""
        order = islice(self._in_order(self.pool.best()), self.settings.n)
        return [
            Suggestion(c.text, c.line, rank, total(c.doubts) if self.settings.reads_doubts else None)
            for rank, c in enumerate(order, 1)
        ]

    def _in_order(self, candidates: list[Candidate]) -> Iterator[Candidate]:
        """The candidates in the order in which they are chosen; only random ones may be near-duplicates."""
        strategy = self.settings.strategy
        if strategy == "random":
            return iter(candidates)
        if strategy == "uncertainty":
            return filter(self._is_new(), candidates)
        if strategy == "both":
            return self._greedily(candidates, [_of_doubts(candidate) for candidate in candidates], DOUBT_SCALE, {})
        grams = [Counter(bigrams(folded(candidate.text))) for candidate in candidates]
        n_texts = Counter(gram for grams_of_text in grams for gram in grams_of_text)
        # Bigrams that occur in only one sentence are ignored, since many of them are misprints and noise.
        weighed = [
            {gram: float(n) for gram, n in grams_of_text.items() if n_texts[gram] > 1} for grams_of_text in grams
        ]
        covered = Counter(gram for text in self._labelled for gram in bigrams(folded(text)))
        return self._greedily(candidates, weighed, COUNT_SCALE, covered)

    def _greedily(
        self,
        candidates: list[Candidate],
        features: list[dict[str, float]],
        scale: float,
        covered: Mapping[str, float],
    ) -> Iterator[Candidate]:
        is_new = self._is_new()
        costs = [self._cost(candidate) for candidate in candidates]
        numbers = greedy(
            features, costs=costs, scale=scale, covered=covered, accepts=lambda number: is_new(candidates[number])
        )
        return (candidates[number] for number in numbers)

    def _is_new(self) -> Callable[[Candidate], bool]:
        """A function that says whether a candidate differs enough from labelled texts and from those it accepted."""
        seen = NearDuplicates()
        for text in self._labelled:
            seen.add(bigrams(folded(text)))

        def is_new(candidate: Candidate) -> bool:
            grams = bigrams(folded(candidate.text))
            if seen.has(grams):
                return False
            seen.add(grams)
            return True

        return is_new


def _of_doubts(candidate: Candidate) -> dict[str, float]:
    """The amounts of the doubts, divided equally among the bigrams of their spans."""
    text = folded(candidate.text)
    by_text: dict[str, float] = {}
    for doubt in candidate.doubts:
        grams = bigrams(text, doubt.start, doubt.end)
        for gram in grams:
            by_text[gram] = by_text.get(gram, 0.0) + doubt.amount / len(grams)
    return by_text
