"""Scores of the tasks, 0..1, and the mean and standard deviation over runs."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from difflib import SequenceMatcher

from cige.data.sentence import Sentence, Span
from cige.data.tags import spans_to_tags
from cige.entities.scores import Counts, score
from cige.errors import DataError


def accuracy(gold: Sequence[object], predicted: Sequence[object]) -> float:
    """Share of correct answers; 0 if there are no answers. Raises DataError if the lists have different lengths."""
    if len(gold) != len(predicted):
        raise DataError(f"{len(gold)} gold answers and {len(predicted)} predicted answers; expected as many of each")
    return sum(a == b for a, b in zip(gold, predicted, strict=True)) / len(gold) if gold else 0.0


def tag_counts(gold: Sequence[Sentence], predicted: Sequence[Sequence[Span]]) -> Counts:
    """Counts of characters in entities or words by their BMES tags, for the paper's label-level F1.

    A character counts as correct if its tag is correct and not O, as in the released code.
    """
    n_gold = n_predicted = n_correct = 0
    for sentence, spans in zip(gold, predicted, strict=True):
        ours = spans_to_tags(len(sentence.text), sentence.spans)
        theirs = spans_to_tags(len(sentence.text), spans)
        n_gold += sum(tag != "O" for tag in ours)
        n_predicted += sum(tag != "O" for tag in theirs)
        n_correct += sum(a == b != "O" for a, b in zip(ours, theirs, strict=True))
    return Counts(n_gold, n_predicted, n_correct)


def span_counts(gold: Sequence[Sentence], predicted: Sequence[Sequence[Span]]) -> Counts:
    """Counts of entities or words with correct span and type, for entity-level F1 and F1 of segmentation."""
    return score([sentence.spans for sentence in gold], predicted).overall


def mean_and_sd(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation, which is 0 for one value."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


_IGNORED = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_HAN = re.compile("[\u4e00-\u9fa5]")
_WORD = re.compile(r"\d+(?:[.,]\d+)+|\w+|[^\w\s]")


def exact_match(answers: Sequence[str], prediction: str) -> float:
    """CMRC2018: 1 if the prediction equals one of the answers, ignoring case and punctuation, else 0."""
    return float(any(_bare(answer) == _bare(prediction) for answer in answers))


def f1(answers: Sequence[str], prediction: str) -> float:
    """CMRC2018: the largest F1 over the answers, 0..1; 0 without answers.

    As in the official script, it counts the longest common *substring* in `units`. That script splits words of other
    scripts with NLTK's tokenizer; here, a run of letters and digits, with points and commas between digits, is one
    word. The two differ in contractions ("don't") and in units of measurement that follow a number without a space.
    """
    ours = units(prediction)
    return max((_f1(units(answer), ours) for answer in answers), default=0.0)


def units(text: str) -> list[str]:
    """The units of a text that F1 counts: its ideographs, and words of other scripts."""
    units_of_text: list[str] = []
    rest = ""
    for char in text.lower().strip():
        if char in _IGNORED:
            continue
        if _HAN.match(char):
            units_of_text += [*_WORD.findall(rest), char]
            rest = ""
        else:
            rest += char
    return [*units_of_text, *_WORD.findall(rest)]


def _f1(answer: list[str], prediction: list[str]) -> float:
    common = SequenceMatcher(None, answer, prediction, autojunk=False).find_longest_match().size
    return 2 * common / (len(answer) + len(prediction)) if common else 0.0


def _bare(text: str) -> str:
    return "".join(char for char in text.lower().strip() if char not in _IGNORED)
