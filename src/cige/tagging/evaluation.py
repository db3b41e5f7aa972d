"""How good a model is on labelled sentences, and what a user's own words add."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cige.data.names import user_words_of
from cige.data.sentence import Sentence
from cige.data.user_words import NGRAM_LENGTHS, NGRAM_PROBS
from cige.entities.labels import map_labels
from cige.entities.scores import Report, score, surfaces
from cige.lexicon.word_rules import reason_to_refuse
from cige.tagging.finder import Finder, LexiconFinder
from cige.text.normalize import normalize


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on labelled sentences, and the `seconds` it took to read them."""

    report: Report
    seconds: float

    @property
    def sentences_per_second(self) -> float:
        return self.report.n_sentences / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The report's fields, `seconds` and `sentences_per_second`, as JSON can hold them."""
        return self.report.to_dict() | {"seconds": self.seconds, "sentences_per_second": self.sentences_per_second}


def evaluate(
    ner: Finder,
    sentences: Sequence[Sentence],
    *,
    labels: Mapping[str, str] | None = None,
    train: Sequence[Sentence] | None = None,
    batch_size: int = 16,
) -> Evaluation:
    """Read the sentences as a user's texts would be read and compare with their spans.

    Args:
        labels: data label -> model label, for those whose names differ.
        train: sentences that the model learned from; adds scores of entities seen there and not seen there.

    Raises:
        DataError: a label of the data that the model has under no name.
    """
    gold = map_labels([s.spans for s in sentences], labels or {}, model_labels=ner.labels)
    texts = [s.text for s in sentences]
    begin = time.perf_counter()
    predicted = list(ner.pipe(texts, batch_size=batch_size))
    seconds = time.perf_counter() - begin
    report = score(
        gold,
        predicted,
        texts=texts,
        lexicon_words=getattr(ner, "lexicon", None),
        train_surfaces=None if train is None else surfaces(train),
    )
    return Evaluation(report=report, seconds=seconds)


@dataclass(frozen=True)
class UserWordTrial:
    """One list of user words and what a model made of it.

    Attributes:
        name: of the list; n_words: in it.
        report: the scores with it.
        listed_names: share of the distinct names of the sentences that are in the list, 0..1.
        listed_entities: the same of their entities, each time a name occurs, 0..1.
    """

    name: str
    n_words: int
    report: Report
    listed_names: float
    listed_entities: float

    @property
    def unseen_recall(self) -> float | None:
        """Recall of the entities that training did not name, 0..1; None if training sentences were not given."""
        unseen = self.report.by_seen.get("not in training")
        return None if unseen is None else unseen.recall

    def to_dict(self) -> dict[str, Any]:
        """The figures of one row, as JSON can hold them."""
        r = self.report
        figures: dict[str, Any] = {"words": self.name, "n_words": self.n_words}
        figures |= {"listed_names": self.listed_names, "listed_entities": self.listed_entities}
        figures |= {"f1": r.f1, "precision": r.precision, "recall": r.recall}
        return figures if self.unseen_recall is None else figures | {"unseen_recall": self.unseen_recall}


def user_word_trials(
    ner: LexiconFinder,
    sentences: Sequence[Sentence],
    *,
    labels: Mapping[str, str] | None = None,
    train: Sequence[Sentence] | None = None,
    gazetteers: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
) -> list[UserWordTrial]:
    """What user words gain: none; every name of the sentences; as many random n-grams mixed in; each gazetteer alone.

    The names of the sentences themselves are the best list that there could be, so what they gain is a ceiling. What a
    list from elsewhere gains depends on how many of the names it has, which each trial says (`listed_names`). The
    lexicon of `ner` stays as it is.

    Args:
        labels, train: as in `evaluate`.
        gazetteers: name -> words.
        seed: of the random n-grams, which are cut from the sentences and are no name in them.
    """
    names = user_words_of(sentences)
    lists: dict[str, Sequence[str]] = {
        "none": [],
        "names of the file": names,
        "names and random n-grams": [*names, *random_ngrams(sentences, len(names), seed=seed)],
        **(gazetteers or {}),
    }
    trials = []
    for name, words in lists.items():
        lexicon = copy.copy(ner.lexicon)  # shares the base words; what is added to it stays its own
        lexicon.add(*words)
        trial = ner.with_lexicon(lexicon)
        report = evaluate(trial, sentences, labels=labels, train=train).report
        listed_names, listed_entities = share_listed(sentences, words)
        trials.append(UserWordTrial(name, len(words), report, listed_names, listed_entities))
    return trials


def share_listed(sentences: Sequence[Sentence], words: Iterable[str]) -> tuple[float, float]:
    """Shares of the distinct names and of the entities of labelled sentences that are in a list, 0..1; 0 of none.

    Names of one character count too, though no list of user words can have them.
    """
    listed = set(map(normalize, words))
    entities = [normalize(s.text[span.start : span.end]) for s in sentences for span in s.spans]
    names = set(entities)
    of_names = len(names & listed) / len(names) if names else 0.0
    return of_names, sum(name in listed for name in entities) / len(entities) if entities else 0.0


def random_ngrams(sentences: Sequence[Sentence], n_wanted: int, *, seed: int) -> list[str]:
    """Up to `n_wanted` distinct stretches of 2 to 6 characters of the sentences that are no name in them."""
    rng = random.Random(seed)
    names = set(map(normalize, surfaces(sentences)))
    texts = [text for text in (normalize(s.text) for s in sentences) if len(text) >= 2]
    found: dict[str, None] = {}
    for _ in range(20 * n_wanted if texts else 0):  # a small file may hold fewer than are wanted
        if len(found) == n_wanted:
            break
        text = rng.choice(texts)
        length = rng.choices(NGRAM_LENGTHS, NGRAM_PROBS)[0]
        start = rng.randrange(max(1, len(text) - length + 1))
        ngram = text[start : start + length]
        if ngram not in names and not reason_to_refuse(ngram, spaces=True):
            found[ngram] = None
    return list(found)
