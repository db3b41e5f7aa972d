"""Exact match and F1 of CMRC2018, as its official script computes them.

F1 is computed from the longest common *substring* in units of Chinese characters and of words in other scripts; case
and punctuation are ignored. The official script splits words of other scripts with NLTK's tokenizer; here, a run of
letters and digits, with points and commas between digits, is one word. The two differ in contractions ("don't") and in
units of measurement that follow a number without a space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

_IGNORED = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_HAN = re.compile("[\u4e00-\u9fa5]")
_WORD = re.compile(r"\d+(?:[.,]\d+)+|\w+|[^\w\s]")


def exact_match(answers: Sequence[str], prediction: str) -> float:
    """1 if the prediction equals one of the answers, ignoring case and punctuation, else 0."""
    return float(any(_bare(answer) == _bare(prediction) for answer in answers))


def f1(answers: Sequence[str], prediction: str) -> float:
    """The largest F1 over the answers, 0..1; 0 without answers."""
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
