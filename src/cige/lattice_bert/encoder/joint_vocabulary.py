"""JointVocabulary: word pieces and words under one numbering, the tokens of a Lattice-BERT (Lai et al. 2021, §2.6)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from cige.errors import LexiconError
from cige.lattice_bert.encoder.network_config import PAPER_N_WORDS
from cige.lattice_bert.encoder.word_pieces import WordPieces
from cige.lattice_bert.kinds import JOINT_VOCABULARY
from cige.lexicon.matcher import Matcher
from cige.lexicon.report import LoadReport, ReportBuilder
from cige.lexicon.storage import CHECKED_BYTES, new_folder, open_folder
from cige.lexicon.text_file import read_text_lines
from cige.lexicon.word_counts import WordCounts
from cige.lexicon.word_rules import DUPLICATE, reason_to_refuse
from cige.text.code_points import is_plain, normal_form

PIECES_FILE = "pieces.txt"
WORDS_FILE = "words.txt"
PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"

IS_PIECE = "a word piece already"
ONE_PIECE = "one piece only: unknown to the word pieces, so a second token over the same characters"


class JointVocabulary:
    """Tokens 0 .. V-1: the pieces of a BERT vocabulary in its order, then words. It is immutable.

    Words are in normal form (`cige.text.code_points.normal_form`), have two or more pieces, and are not pieces
    themselves.

    Attributes:
        n_pieces, n_words: the numbers of pieces and words; word k has id n_pieces + k.
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special pieces.
        report: which words were taken and which were refused; None for a loaded vocabulary.
    """

    def __init__(self, *, pieces: Sequence[str], words: Sequence[str], report: LoadReport | None = None) -> None:
        self._tokens = [*pieces, *words]
        self._id_of = {token: number for number, token in enumerate(self._tokens)}
        self.n_pieces = len(pieces)
        self.n_words = len(words)
        self.report = report
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._id_of[special] for special in (PAD, UNK, CLS, SEP, MASK)
        )

    @classmethod
    def build(cls, pieces: Iterable[str], words: Iterable[str], *, n_words: int | None = None) -> JointVocabulary:
        """Number `pieces` and `words` in their order.

        Args:
            pieces: a BERT vocabulary with [PAD], [UNK], [CLS], [SEP] and [MASK].
            words: words, which are converted to normal form first; `report` lists those that are refused by their
                position, from 1.
            n_words: take the first `n_words` valid words; None takes all.

        Raises:
            LexiconError: a piece is empty or occurs twice, a special piece is missing, or `words` is a string.
        """
        pieces = list(pieces)
        _check_pieces(pieces, source="pieces")
        if isinstance(words, str):
            raise LexiconError(f"words {words[:20]!r}: expected a list of words, not a string")
        cutter = WordPieces(pieces, unk_id=pieces.index(UNK))
        known = set(pieces)
        report = ReportBuilder(source="words", format="words")
        taken: dict[str, None] = {}
        for line, given in enumerate(words, start=1):
            if n_words is not None and len(taken) >= n_words:
                report.n_skipped += 1
                continue
            word = normal_form(given)
            problem = reason_to_refuse(word) or (IS_PIECE if word in known else None)
            problem = problem or (DUPLICATE if word in taken else None)
            if not problem and not is_plain(word) and len(cutter.split(word).ids) < 2:
                problem = ONE_PIECE
            if problem:
                report.refuse(line, given, problem)
            else:
                taken[word] = None
        return cls(pieces=pieces, words=list(taken), report=report.build(n_taken=len(taken)))

    @classmethod
    def from_counts(
        cls,
        pieces: Iterable[str],
        counts: WordCounts,
        n_words: int = PAPER_N_WORDS,
        *,
        min_count: int = 1,
        include: Iterable[str] = (),
    ) -> JointVocabulary:
        """Use the words of `include`, then the most frequent words; equally frequent words are in code-point order.

        Args:
            n_words: maximum number of words, including those of `include`, which are taken however rare they are.
            min_count: words that occur less often are left out.

        Raises:
            LexiconError: `n_words` is not 0 and no word was found; and the errors of `build`.
        """
        vocabulary = cls.build(pieces, [*include, *counts.ranked(min_count=min_count)], n_words=n_words)
        if n_words and not vocabulary.n_words:
            raise LexiconError(
                f"no Chinese word occurs {min_count:,} times among {counts.n_chars:,} characters; give more text, "
                "or set the number of words to 0"
            )
        return vocabulary

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> JointVocabulary:
        """Read a saved vocabulary; LexiconError if a file is missing, truncated, changed or not of a vocabulary."""
        facts = open_folder(folder, kind=JOINT_VOCABULARY, check_up_to=CHECKED_BYTES)
        try:
            vocabulary = cls(pieces=_lines(Path(folder) / PIECES_FILE), words=_lines(Path(folder) / WORDS_FILE))
        except KeyError as missing:
            raise LexiconError(f"{folder}: its pieces lack {missing}; copy or build it again") from missing
        if vocabulary.fingerprint != facts.get("fingerprint"):
            raise LexiconError(f"{folder}: its tokens are not those that were saved; copy or build it again")
        return vocabulary

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder with pieces.txt and words.txt, one token per line, completely or not at all. Raises
        LexiconError if the folder contains something else, or writing failed; an older vocabulary there is kept."""
        with new_folder(folder, kind=JOINT_VOCABULARY) as (aside, facts):
            for name, tokens in ((PIECES_FILE, self.pieces), (WORDS_FILE, self.words)):
                (aside / name).write_bytes("".join(f"{token}\n" for token in tokens).encode())
            facts.update(n_pieces=self.n_pieces, n_words=self.n_words, fingerprint=self.fingerprint)

    def __len__(self) -> int:
        return len(self._tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._id_of

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(JointVocabulary, pieces=self.pieces, words=self.words), ()

    @property
    def pieces(self) -> list[str]:
        """The word pieces, in order of ids."""
        return self._tokens[: self.n_pieces]

    @property
    def words(self) -> list[str]:
        """The words, in order of ids."""
        return self._tokens[self.n_pieces :]

    def token(self, id: int) -> str:
        """The piece or word with this id. Raises LexiconError if there is none."""
        if not 0 <= id < len(self._tokens):
            raise LexiconError(f"token id {id}: this vocabulary has ids 0 to {len(self._tokens) - 1:,}")
        return self._tokens[id]

    def id(self, token: str) -> int:
        """The id of a piece or word. Raises LexiconError if it is not in the vocabulary; check with `in`."""
        try:
            return self._id_of[token]
        except KeyError:
            raise LexiconError(f"{token!r} is not one of this vocabulary's {len(self):,} tokens") from None

    @cached_property
    def fingerprint(self) -> str:
        """Sha256 of all tokens in order and of the number of pieces."""
        return hashlib.sha256("\n".join([str(self.n_pieces), *self._tokens]).encode()).hexdigest()

    @cached_property
    def cutter(self) -> WordPieces:
        """Splits texts into the pieces of this vocabulary."""
        return WordPieces(self.pieces, unk_id=self.unk_id)

    @cached_property
    def matcher(self) -> Matcher:
        """Finds the words in a text in normal form; words are numbered from 0."""
        return Matcher.build(self.words)


def read_pieces(path: str | os.PathLike[str]) -> list[str]:
    """The pieces of a BERT vocab.txt, one per line; raises LexiconError, with the line, if it is not such a file."""
    pieces = [piece for _, piece in read_text_lines(path)]
    _check_pieces(pieces, source=str(path))
    return pieces


def _check_pieces(pieces: list[str], *, source: str) -> None:
    first: dict[str, int] = {}
    for line, piece in enumerate(pieces, start=1):
        if not piece or "\n" in piece or "\r" in piece:
            raise LexiconError(f"{source}, line {line}: {piece!r}; expected one word piece per line and no empty line")
        if piece in first:
            raise LexiconError(
                f"{source}, line {line}: {piece!r} already occurs on line {first[piece]}; each piece has one id, "
                "so remove the second one or rename it to an [unused...] piece"
            )
        first[piece] = line
    missing = [special for special in (PAD, UNK, CLS, SEP, MASK) if special not in first]
    if missing:
        raise LexiconError(
            f"{source}: {', '.join(missing)} missing among {len(pieces):,} pieces; expected the vocab.txt of a BERT"
        )


def _lines(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode("utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as reason:
        raise LexiconError(f"{path}: cannot be read ({reason}); copy or build the vocabulary again") from reason
