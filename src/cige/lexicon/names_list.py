"""NamesList: names with the kinds that a background list gives them, such as `阿莫西林<TAB>MEDICINE`.

A kind is a type, or a type and the list that says so: `COMPANY` or `COMPANY/registers`. A tagger learns what each kind
is worth, so lists of different quality should have kinds of their own. A file has one name per line, then a tab and its
kinds, which are separated by commas. Lines that begin with `# ` are comments; `# version: ...` and `# date: ...` say
which list it is. A gazetteer is a list of names of one kind.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

import cige.lexicon
from cige.errors import LexiconError, WordListWarning
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.storage import new_file
from cige.lexicon.word_rules import NOT_UTF8, reason_to_refuse
from cige.text.normalize import normalize, without_invisible

MAX_GAZETTEERS = 30  # each has a bit of an int32, whose first bit is that of the lexicon
_FACTS = ("version", "date")


def with_gazetteers(base: Lexicon, paths: Sequence[str | os.PathLike[str]]) -> tuple[Lexicon, np.ndarray]:
    """The union of a lexicon's base words and those of some word lists.

    The gazetteers' words come first, so that a trimmed model keeps them. Counts of the base lexicon are kept; other
    words have a count of 1.

    Returns:
        The union, and int32[n_words]: bit 0 is set for words of `base`, and bit 1 + k for words of the k-th list.

    Raises:
        LexiconError: a list cannot be read or has no usable word, or there are too many lists.
    """
    from cige.lexicon.words_file import read_words

    lists = []
    for path in paths:
        listed = read_words(path)
        listed.check()
        lists.append(listed.words)
    return with_lists(base, lists)


def with_lists(base: Lexicon, gazetteers: Sequence[Sequence[str]]) -> tuple[Lexicon, np.ndarray]:
    """Like `with_gazetteers`, for lists of normalised words in memory."""
    if len(gazetteers) > MAX_GAZETTEERS:
        raise LexiconError(f"{len(gazetteers)} gazetteers; expected at most {MAX_GAZETTEERS}")
    lists = [[without_invisible(word) for word in group] for group in (list(base), *gazetteers)]
    words = list(dict.fromkeys(word for group in (*lists[1:], lists[0]) for word in group))
    counts = None
    if base.count(0) is not None:
        ids = [base.id(word) for word in words]
        counts = [1 if number is None else int(base.count(number) or 0) for number in ids]
    union = Lexicon.from_words(words, counts=counts, spaces=True)
    groups = np.zeros(len(words), np.int32)
    place = {word: k for k, word in enumerate(words)}
    for bit, group in enumerate(lists):
        groups[[place[word] for word in group]] |= 1 << bit
    return union, groups


@dataclass(frozen=True)
class NamesList:
    """Names and their kinds.

    Attributes:
        kinds: the kinds of each name, at least one.
        version, date: as the file states them; empty if it does not.
        report: the lines that were refused when the list was read; None for a list that was made in memory.
        places: the file and the line where each kind is first, for messages; empty for a list that was made in memory.
    """

    kinds: Mapping[str, tuple[str, ...]]
    version: str = ""
    date: str = ""
    report: cige.lexicon.LoadReport | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, kinds in self.kinds.items():
            if isinstance(kinds, str):  # whose letters would be read as kinds
                raise LexiconError(f"names: {name!r} was given with {kinds!r}; expected a tuple of kinds, ({kinds!r},)")

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def about(self) -> dict[str, str]:
        """Version and date, as a manifest states them."""
        return {name: value for name in _FACTS if (value := getattr(self, name))}

    @property
    def all_kinds(self) -> tuple[str, ...]:
        """The distinct kinds, sorted."""
        return tuple(sorted({kind for kinds in self.kinds.values() for kind in kinds}))

    def counts(self) -> dict[str, int]:
        """kind -> number of names that have it; a name may have several kinds."""
        return dict(sorted(Counter(kind for kinds in self.kinds.values() for kind in kinds).items()))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> NamesList:
        """Read a list, plain or compressed; a name on several lines has the kinds of all of them. Raises a LexiconError
        if the file cannot be read or has no usable line, or there are too many kinds. `report` lists the lines that
        were refused one by one."""
        from cige.lexicon.report import ReportBuilder
        from cige.lexicon.text_file import read_lines

        report = ReportBuilder(source=str(path), format="names")
        facts = dict.fromkeys(_FACTS, "")
        kinds: dict[str, tuple[str, ...]] = {}
        places: dict[str, str] = {}
        kinds_of: dict[str, tuple[str, ...]] = {}  # by what a line says after its name, which many lines share
        for number, raw in read_lines(path):
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError:
                report.refuse(number, raw.decode("utf-8", "replace"), NOT_UTF8)
                continue
            if line.startswith("# "):
                name, _, value = line[2:].partition(":")
                if name in facts:
                    facts[name] = value.strip()
                continue
            if not line.strip():
                continue
            word, _, written = line.partition("\t")
            word = normalize(without_invisible(word).strip())
            given = kinds_of.get(written)
            if given is None:
                parts = (kind.strip() for kind in written.split("\t")[0].split(","))
                given = kinds_of[written] = tuple(dict.fromkeys(filter(None, parts)))
                places |= {kind: f"{path}, line {number}" for kind in given if kind not in places}
            if reason := reason_to_refuse(word, spaces=True) or (None if given else "no kind after a tab"):
                report.refuse(number, line, reason)
                continue
            kinds[word] = tuple(dict.fromkeys((*kinds[word], *given))) if word in kinds else given
        if not kinds:
            raise LexiconError(
                f"{path}: no usable line; expected a name, a tab and its kinds (阿莫西林<TAB>MEDICINE), in UTF-8\n"
                f"{report.build(n_taken=0)}"
            )
        names = cls(kinds, **facts, report=report.build(n_taken=len(kinds)), places=places)
        check_number_of_kinds(names.all_kinds, str(path))
        return names

    def words_by_kind(self) -> dict[str, list[str]]:
        """kind -> its names, for all kinds in order."""
        words: dict[str, list[str]] = {kind: [] for kind in self.all_kinds}
        for word, kinds in self.kinds.items():
            for kind in kinds:
                words[kind].append(word)
        return words

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the list, sorted by name, so that equal lists are equal files; existing files are replaced."""
        head = [f"# {name}: {value}\n" for name, value in self.about.items()]
        rows = [f"{word}\t{','.join(sorted(kinds))}\n" for word, kinds in sorted(self.kinds.items())]
        with new_file(path) as aside:
            aside.write_text("".join([*head, *rows]), encoding="utf-8", newline="\n")


Names: TypeAlias = NamesList | str | os.PathLike[str]
"""A list of names, or the path of one."""


def names_list(given: Names) -> NamesList:
    """A list, or the list in a file; lines of the file that cannot be used are told in a `WordListWarning`.

    Raises:
        TypeError: something else was given.
        LexiconError: the errors of `NamesList.read`.
    """
    if isinstance(given, NamesList):
        return given
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"names={given!r}: expected a NamesList or the path of a list of names")
    names = NamesList.read(given)
    if names.report is not None and names.report.n_refused:
        warnings.warn(str(names.report), WordListWarning, stacklevel=3)
    return names


def merged(lists: Sequence[NamesList], *, version: str = "", date: str = "") -> NamesList:
    """One list with the names of all; a name has the kinds of every list that has it. Raises a LexiconError if there
    are too many kinds."""
    kinds: dict[str, tuple[str, ...]] = {}
    for names in lists:
        for word, kinds_of_word in names.kinds.items():
            kinds[word] = tuple(dict.fromkeys((*kinds.get(word, ()), *kinds_of_word)))
    check_number_of_kinds((kind for kinds_of_word in kinds.values() for kind in kinds_of_word), "the lists together")
    return NamesList(kinds, version=version, date=date)


def check_number_of_kinds(kinds: Iterable[str], source: str) -> None:
    """Raise LexiconError if a list has more kinds than a word has bits for."""
    n_kinds = len(set(kinds))
    if n_kinds > MAX_GAZETTEERS:
        raise LexiconError(f"{source}: {n_kinds} kinds of names; expected at most {MAX_GAZETTEERS}")
