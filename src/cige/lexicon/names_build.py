"""Build a list of names with kinds from collected lists, keeping what a text supports.

Collected lists are noisy: a short form of a company (女子力) is mostly a common word, and most of 137,000 Japanese
names occur nowhere. Each row is a name, its type and the source that says so; a table of kinds decides, for each type
and source, what the names are called, how often they must occur in the text, and whether common words are left out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import NamesList, check_number_of_kinds
from cige.lexicon.text_file import read_text_lines
from cige.lexicon.word_rules import reason_to_refuse
from cige.text.normalize import normalize, without_invisible

_BLOCK_LINES = 2000  # lines whose words are looked up at once
_NAME_TAGS = ("nr", "ns", "nt", "nz")  # jieba's tags of persons, places, organisations and other proper nouns


@dataclass(frozen=True)
class KindRule:
    """What is done with the names of one type from one source.

    Attributes:
        kind: what the names are called in the list, such as "COMPANY/short".
        min_count: number of times that a name must occur in the text; 0 keeps names that the text does not have.
        no_common: whether common words of the language are left out.
    """

    kind: str
    min_count: int = 0
    no_common: bool = False


@dataclass
class BuildReport:
    """How many names each kind has, and why others were left out."""

    n_kept: Counter[str] = field(default_factory=Counter)
    n_rare: Counter[str] = field(default_factory=Counter)
    n_common: Counter[str] = field(default_factory=Counter)
    n_without_rule: int = 0
    n_refused: int = 0


def read_kinds(path: str | os.PathLike[str]) -> dict[tuple[str, str], KindRule]:
    """(type, source) -> rule, from a file of `type<TAB>source<TAB>kind<TAB>min_count<TAB>common`, where `common` is
    "keep" or "drop". Lines that begin with # are comments. Raises a LexiconError if a line has another form."""
    rules = {}
    for number, line, cells in _rows_of(path):
        if len(cells) != 5 or not cells[3].isdigit() or cells[4] not in ("keep", "drop"):
            raise LexiconError(
                f"{path}, line {number}: {line!r}; expected type, source, kind, minimum count and keep or drop, "
                "separated by tabs"
            )
        rules[cells[0], cells[1]] = KindRule(cells[2], int(cells[3]), cells[4] == "drop")
    if not rules:
        raise LexiconError(f"{path}: no rule; expected lines of type, source, kind, minimum count and keep or drop")
    return rules


def read_rows(path: str | os.PathLike[str]) -> Iterable[tuple[str, str, str]]:
    """(name, type, source) of each line `name<TAB>type<TAB>source`. Raises a LexiconError if a line has another form,
    or is not UTF-8."""
    for number, line, cells in _rows_of(path):
        if len(cells) != 3:
            raise LexiconError(f"{path}, line {number}: {line!r}; expected a name, its type and its source")
        yield normalize(without_invisible(cells[0]).strip()), cells[1], cells[2]


def _rows_of(path: str | os.PathLike[str]) -> Iterator[tuple[int, str, list[str]]]:
    """(number, line, cells) of each line that is neither blank nor a comment."""
    for number, line in read_text_lines(path):
        if line.strip() and not line.startswith("#"):
            yield number, line, line.split("\t")


def count_in(path: str | os.PathLike[str], names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs in a text file with one sentence per line, also inside longer words. Raises a
    LexiconError if the file cannot be read or is not UTF-8, or none of the names occurs in it."""
    lexicon = Lexicon.from_words(names, spaces=True)
    counts = np.zeros(len(lexicon), np.int64)
    lines = (line for _, line in read_text_lines(path))
    while block := list(islice(lines, _BLOCK_LINES)):
        np.add.at(counts, lexicon.match("\n".join(block))[:, 2], 1)
    if not counts.any():
        raise LexiconError(f"{path}: none of the names occurs in it; expected text with one sentence per line")
    return dict(zip(lexicon, counts.tolist(), strict=True))


def common_words() -> Callable[[str], bool]:
    """Whether jieba's dictionary has a word as something else than a proper noun. Raises a LexiconError if jieba is not
    installed."""
    try:
        import jieba
    except ModuleNotFoundError as missing:
        raise LexiconError("leaving out common words needs jieba's dictionary; pip install jieba") from missing
    tags = {}
    with jieba.get_module_res("dict.txt") as file:
        for line in file.read().decode("utf-8").splitlines():
            word, _, tag = line.split(" ")
            tags[word] = tag
    return lambda word: not tags.get(word, "nz").startswith(_NAME_TAGS)


def build_names(
    rows: Iterable[tuple[str, str, str]],
    rules: dict[tuple[str, str], KindRule],
    *,
    counts: dict[str, int],
    is_common: Callable[[str], bool],
    version: str = "",
    date: str = "",
) -> tuple[NamesList, BuildReport]:
    """The list of the names that the rules keep.

    Args:
        rows: (normalised name, type, source) triples.
        counts: how often each name occurs in the text (`count_in`); names that are absent count 0.
        is_common: whether a name is a common word of the language (`common_words`).
    """
    report = BuildReport()
    kinds: dict[str, tuple[str, ...]] = {}
    for word, type_, source in rows:
        rule = rules.get((type_, source))
        if rule is None:
            report.n_without_rule += 1
        elif reason_to_refuse(word, spaces=True):
            report.n_refused += 1
        elif counts.get(word, 0) < rule.min_count:
            report.n_rare[rule.kind] += 1
        elif rule.no_common and is_common(word):
            report.n_common[rule.kind] += 1
        elif rule.kind not in kinds.get(word, ()):
            kinds[word] = (*kinds.get(word, ()), rule.kind)
            report.n_kept[rule.kind] += 1
    if not kinds:
        raise LexiconError("no name is left; check that the types and sources of the rules are those of the rows")
    names = NamesList(kinds, version=version, date=date)
    check_number_of_kinds(names.all_kinds, "the rules")
    return names, report
