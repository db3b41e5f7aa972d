"""Check a vocabulary that was read from a folder: every row number must be one of its table, since C reads by them."""

from __future__ import annotations

import numpy as np

from cige.data.vocabulary import N_SPECIAL, PAD, CodeTable, Vocabulary

_MOST_GROUPS = 31  # of an int32 whose sign stays free


def check_vocabulary(vocabulary: Vocabulary) -> None:
    """Check that all row numbers are rows of the tables, and that codes and rows belong together.

    Raises:
        ValueError: they do not; the message names the array.
    """
    n_rows = vocabulary.n_rows
    if len(n_rows) != 3 or not all(type(n) is int and N_SPECIAL <= n < 1 << 31 for n in n_rows):
        raise ValueError(f"n_rows is {n_rows!r}; expected three whole numbers of at least {N_SPECIAL}")
    for name, table, n in (("chars", vocabulary.chars, n_rows[0]), ("bigrams", vocabulary.bigrams, n_rows[1])):
        _check_codes(name, table, n)
    _check_rows("word_rows", vocabulary.word_rows, n_rows[2])
    _check_facts(vocabulary)
    if vocabulary.components is not None:
        vocabulary.components.check()
    for name in ("word_counts", "word_groups"):
        values = getattr(vocabulary, name)
        if values is not None and (values.shape != vocabulary.word_rows.shape or values.dtype.kind != "i"):
            raise ValueError(f"{name} is {values.dtype}{list(values.shape)}; expected an integer for each word")
    if vocabulary.word_counts is not None and vocabulary.word_counts.size and vocabulary.word_counts.min() < 0:
        raise ValueError(f"word_counts has {int(vocabulary.word_counts.min())}; expected counts from 0 on")
    if vocabulary.word_groups is not None and vocabulary.word_groups.size:
        low, high = int(vocabulary.word_groups.min()), int(vocabulary.word_groups.max())
        if low < 0 or high >> vocabulary.n_groups:
            raise ValueError(f"word_groups has {low} to {high}; expected bits of {vocabulary.n_groups} gazetteers")


def _check_facts(vocabulary: Vocabulary) -> None:
    """What comes from the manifest and is no array."""
    n_groups, n_tuned, n_rows = vocabulary.n_groups, vocabulary.n_tuned, vocabulary.n_rows
    if type(n_groups) is not int or not 1 <= n_groups <= _MOST_GROUPS:
        raise ValueError(f"n_groups is {n_groups!r}; expected a whole number from 1 to {_MOST_GROUPS}")
    if vocabulary.word_groups is None and n_groups > 1:
        raise ValueError(f"word_groups is missing; expected the gazetteers, of {n_groups}, of each word")
    if len(n_tuned) != 3 or not all(type(n) is int and 0 <= n <= most for n, most in zip(n_tuned, n_rows, strict=True)):
        raise ValueError(f"n_tuned is {n_tuned!r}; expected three whole numbers of at most n_rows, {n_rows}")
    for name, names in (("gazetteers", vocabulary.gazetteers), ("word_labels", vocabulary.word_labels)):
        if not all(isinstance(one, str) for one in names):
            raise ValueError(f"{name} holds something that is no name")
    if vocabulary.gazetteers and len(vocabulary.gazetteers) != n_groups - 1:
        raise ValueError(f"gazetteers has {len(vocabulary.gazetteers)} names; expected {n_groups - 1}, one per group")


def _check_codes(name: str, table: CodeTable, n_rows: int) -> None:
    codes, rows = table.codes, table.rows
    if codes.ndim != 1 or codes.dtype != np.int64 or codes.shape != rows.shape:
        raise ValueError(
            f"{name}.codes is {codes.dtype}{list(codes.shape)} and {name}.rows {list(rows.shape)}; "
            "expected as many int64 codes as rows"
        )
    if (codes[1:] <= codes[:-1]).any():
        raise ValueError(f"{name}.codes is not ascending")
    if codes.size and codes[0] < 0:
        raise ValueError(f"{name}.codes has {int(codes[0])}; expected no negative code")
    _check_rows(f"{name}.rows", rows, n_rows)


def _check_rows(name: str, rows: np.ndarray, n_rows: int) -> None:
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(f"{name} is {rows.dtype}{list(rows.shape)}; expected a list of whole numbers")
    if rows.size and not PAD < int(rows.min()) <= int(rows.max()) < n_rows:
        raise ValueError(f"{name} has rows {int(rows.min())} to {int(rows.max())}; expected 1 to {n_rows - 1}")
