"""Evaluate a model on labelled sentences, and measure the effect of user words."""

from __future__ import annotations

import copy
import random
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypedDict

from cige.data.names import labelled_words_of, user_words_of
from cige.data.sentence import Sentence
from cige.data.user_words import NGRAM_LENGTHS, NGRAM_PROBS
from cige.entities.calibration import expected_calibration_error, reliability
from cige.entities.errors import KINDS, EntityError, confusion, list_errors
from cige.entities.labels import map_labels
from cige.entities.scores import Report, parts_of, score, surfaces
from cige.lexicon.user_word import UserWord, reason_to_refuse_user_word
from cige.lexicon.word_rules import reason_to_refuse
from cige.tagging.finder import EntityFinder, Finder, LexiconFinder
from cige.tagging.selection import Request, select, with_silent_labels
from cige.text.normalize import normalize, normalize_word

WRONG_SHARE = 0.2  # share of the labels that are replaced in the trial with wrong labels


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on labelled sentences.

    Attributes:
        seconds: time to predict all sentences.
        labels: the labels that the model reports.
        errors: the differences between gold and predicted entities, in order.
        confusion: how often each gold label was predicted as each label; see `entities.errors.confusion`.
        points: the score of each predicted entity, and whether it is correct.
    """

    report: Report
    seconds: float
    labels: tuple[str, ...] = ()
    errors: tuple[EntityError, ...] = ()
    confusion: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    points: tuple[tuple[float, bool], ...] = ()

    @property
    def sentences_per_second(self) -> float:
        return self.report.n_sentences / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, object]:
        """The fields of the report, the numbers of errors, and `sentences_per_second`, as JSON values."""
        kinds = Counter(error.kind for error in self.errors)
        return self.report.to_dict() | {
            "errors": {kind: kinds[kind] for kind in KINDS},
            "confusion": {label: dict(row) for label, row in self.confusion.items()},
            "calibration": {
                "expected_error": expected_calibration_error(self.points),
                "bins": [asdict(in_bin) for in_bin in reliability(self.points)],
            },
            "seconds": self.seconds,
            "sentences_per_second": self.sentences_per_second,
        }


def evaluate(
    ner: Finder,
    sentences: Sequence[Sentence],
    *,
    labels: Mapping[str, str] | None = None,
    train: Sequence[Sentence] | None = None,
    batch_size: int = 16,
    data_labels_only: bool = False,
    word_labels: Collection[str] = (),
    **options: Any,
) -> Evaluation:
    """Predict the sentences as texts of users are predicted, and compare the entities with their spans.

    Args:
        labels: data label -> model label, for labels whose names differ; "" leaves a label out. Labels of the data that
            the model reports only on request are reported here.
        train: the training sentences of the model; adds separate scores for entities that occur in them and for others,
            and for entities of sentences that are among them and of others.
        data_labels_only: leave out predictions with labels that no sentence has, for data that annotate only some of
            the labels of the model; otherwise these predictions count as errors.
        word_labels: labels of data that only user words have, besides those of the words that `ner` has now; an entity
            with such a label counts as missed if no word gives it.
        options: further arguments of `EntityFinder.pipe`, such as `types`.

    Raises:
        DataError: neither the model nor a user word has a label of the data, or `labels` maps to such a label.
    """
    if isinstance(ner, EntityFinder):
        written = {(labels or {}).get(span.label, span.label) for s in sentences for span in s.spans}
        request = with_silent_labels(Request.of(**options), written, ner.labels, ner.label_facts)
        if request.labels is not None and options.get("labels") is None:
            options["labels"] = sorted({*request.labels, *ner.word_labels})
        known = reported = _labels_of(ner, Request.of(**options))
        if data_labels_only:
            reported = options["labels"] = sorted(written.intersection(known))
    else:
        known, reported, options = ner.labels, ner.labels, {}
    gold = map_labels([s.spans for s in sentences], labels or {}, model_labels={*known, *word_labels})
    texts = [s.text for s in sentences]
    begin = time.perf_counter()
    predicted = list(ner.pipe(texts, batch_size=batch_size, **options))
    seconds = time.perf_counter() - begin
    report = score(
        gold,
        predicted,
        texts=texts,
        lexicon_words=getattr(ner, "lexicon", None),
        train_surfaces=None if train is None else surfaces(train),
        train_texts=None if train is None else {sentence.text for sentence in train},
    )
    keys = [{(s.start, s.end, s.label, parts_of(s)) for s in spans} for spans in gold]
    return Evaluation(
        report=report,
        seconds=seconds,
        labels=tuple(reported),
        errors=tuple(list_errors(gold, predicted)),
        confusion=confusion(gold, predicted),
        points=tuple(
            (e.score, (e.start, e.end, e.label, e.parts) in gold_keys)
            for gold_keys, entities in zip(keys, predicted, strict=True)
            for e in entities
        ),
    )


def _labels_of(ner: EntityFinder, request: Request) -> list[str]:
    """The labels that a finder reports, with those of user words."""
    of_model = select(request, ner.labels, ner.label_facts, word_labels=ner.word_labels).families
    of_words = ner.word_labels.difference(ner.labels)
    return sorted({*of_model, *(of_words if request.labels is None else of_words.intersection(request.labels))})


class TrialJson(TypedDict, total=False):
    """The numbers of a trial as JSON; `listed_names` and `unseen_recall` only if they were measured."""

    words: str
    n_words: int
    listed_names: float
    listed_entities: float
    f1: float
    precision: float
    recall: float
    unseen_recall: float


@dataclass(frozen=True)
class UserWordTrial:
    """A list of user words, and the scores of a model with it.

    Attributes:
        listed_names: share of the distinct names of the sentences that are in the list, 0..1.
        listed_entities: the same share for entities, where each occurrence of a name counts, 0..1.
    """

    name: str
    n_words: int
    report: Report
    listed_names: float
    listed_entities: float

    @property
    def unseen_recall(self) -> float | None:
        """Recall, 0..1, of entities not in the training sentences; None if there are no training sentences."""
        unseen = self.report.by_seen.get("not in training")
        return None if unseen is None else unseen.recall

    def to_dict(self) -> TrialJson:
        """The numbers of this trial, as JSON values."""
        figures: TrialJson = {
            "words": self.name,
            "n_words": self.n_words,
            "listed_names": self.listed_names,
            "listed_entities": self.listed_entities,
            "f1": self.report.f1,
            "precision": self.report.precision,
            "recall": self.report.recall,
        }
        if self.unseen_recall is not None:
            figures["unseen_recall"] = self.unseen_recall
        return figures


def user_word_trials(
    ner: LexiconFinder,
    sentences: Sequence[Sentence],
    *,
    labels: Mapping[str, str] | None = None,
    train: Sequence[Sentence] | None = None,
    gazetteers: Mapping[str, Sequence[str | UserWord]] | None = None,
    with_labels: bool | None = None,
    seed: int = 0,
) -> list[UserWordTrial]:
    """Scores with different user words: none; the names of the sentences; these and random n-grams; each gazetteer.

    The names of the sentences themselves are the best possible list, so their gain is an upper bound; the gain of any
    other list depends on the share of the names that it contains (`listed_names`). With labels, there are further
    trials: the names with their labels, the same with no label for a fifth of them and with a wrong label for this
    fifth, and each gazetteer that has labels without its labels. What a wrong label costs is the difference between
    these two: a list that lacks the label loses its gain in any case. The lexicon of `ner` is not changed.

    Args:
        labels, train: as in `evaluate`.
        gazetteers: name -> words, with or without labels and modes. The data may also have labels that only these
            words have.
        with_labels: whether to run the trials with labels; None runs them if the model uses labels.
        seed: seed of the random n-grams, which are substrings of the sentences but not names, and of the wrong labels.
    """
    known = getattr(ner, "read_word_labels", ())
    wants_labels = bool(known) if with_labels is None else with_labels
    names = list(map(UserWord, user_words_of(sentences)))
    ngrams = map(UserWord, random_ngrams(sentences, len(names), seed=seed))
    lists = {"none": [], "names of the file": names, "names and random n-grams": [*names, *ngrams]}
    if wants_labels:
        labelled = labelled_words_of(sentences, labels=labels)
        lists["names with labels"] = labelled
        wrong = with_wrong_labels(labelled, known or ner.labels, seed=seed)
        right = zip(labelled, wrong, strict=True)
        lists[f"names, {WRONG_SHARE:.0%} no labels"] = [a if a.label == b.label else UserWord(a.text) for a, b in right]
        lists[f"names, {WRONG_SHARE:.0%} wrong labels"] = wrong
    word_labels = set()
    for name, given in (gazetteers or {}).items():
        lists[name] = words = [UserWord(word) if isinstance(word, str) else word for word in given]
        own_labels = {word.label for word in words if word.label is not None}
        word_labels |= own_labels
        if wants_labels and any(own_labels):
            plain = (UserWord(word.text) if word.label else word for word in words)
            lists[f"{name} without labels"] = [word for word in plain if not reason_to_refuse_user_word(word)]
    trials = []
    for name, words in lists.items():
        lexicon = copy.copy(ner.lexicon)  # shares the base words; words added to the copy do not affect the original
        lexicon.add_entries(*words)
        options: dict[str, Any] = {"data_labels_only": True, "word_labels": word_labels}
        report = evaluate(ner.with_lexicon(lexicon), sentences, labels=labels, train=train, **options).report
        listed_names, listed_entities = share_listed(sentences, (word.text for word in words))
        trials.append(UserWordTrial(name, len(words), report, listed_names, listed_entities))
    return trials


def with_wrong_labels(words: Sequence[UserWord], labels: Sequence[str], *, seed: int) -> list[UserWord]:
    """The words with WRONG_SHARE of their labels replaced by others of `labels`; unchanged if there is no other."""
    rng = random.Random(seed)
    labelled = [k for k, word in enumerate(words) if word.label is not None]
    changed = list(words)
    for k in rng.sample(labelled, round(WRONG_SHARE * len(labelled))):
        others = sorted(set(labels) - {words[k].label})
        if others:
            changed[k] = replace(words[k], label=rng.choice(others))
    return changed


def share_listed(sentences: Sequence[Sentence], words: Iterable[str]) -> tuple[float, float]:
    """Shares, 0..1, of the distinct names and of the entities of sentences that are in a list; 0 if there are none.

    Names of one character count too, although they cannot be user words.
    """
    listed = set(map(normalize_word, words))
    entities = [normalize_word(span.text_in(s.text)) for s in sentences for span in s.spans]
    names = set(entities)
    of_names = len(names & listed) / len(names) if names else 0.0
    return of_names, sum(name in listed for name in entities) / len(entities) if entities else 0.0


def random_ngrams(sentences: Sequence[Sentence], n_wanted: int, *, seed: int) -> list[str]:
    """Up to `n_wanted` distinct substrings of 2 to 6 characters of the sentences that are not names in them."""
    rng = random.Random(seed)
    names = set(map(normalize, surfaces(sentences)))
    texts = [text for text in (normalize(s.text) for s in sentences) if len(text) >= 2]
    ngrams: dict[str, None] = {}
    for _ in range(20 * n_wanted if texts else 0):  # a small file may contain fewer than `n_wanted`
        if len(ngrams) == n_wanted:
            break
        text = rng.choice(texts)
        length = rng.choices(NGRAM_LENGTHS, NGRAM_PROBS)[0]
        start = rng.randrange(max(1, len(text) - length + 1))
        ngram = text[start : start + length]
        if ngram not in names and not reason_to_refuse(ngram, spaces=True):
            ngrams[ngram] = None
    return list(ngrams)
