"""The lexicon and the vocabulary of a model: save them in its folder, and check on loading that they fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from cige.data.components import ComponentTable
from cige.data.names_of_model import with_names
from cige.data.vocabulary import N_SPECIAL, PAD, CodeTable, Vocabulary
from cige.errors import LexiconError, ModelError
from cige.folders.mapped_arrays import arrays_in, map_file
from cige.json_text import JsonObject
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import NamesList

VOCABULARY, LEXICON = "vocabulary.safetensors", "lexicon"
_OPTIONAL = ("word_counts", "word_groups")
_COMPONENTS, _N_COMPONENTS = "components.", "n_components"
_MOST_GROUPS = 31  # of an int32 whose sign stays free


def save_words(folder: Path, vocabulary: Vocabulary, lexicon: Lexicon) -> JsonObject:
    """Write both into a model folder; returns the facts for the manifest that `load_words` needs, except `n_tuned`."""
    arrays = {
        "chars.codes": vocabulary.chars.codes,
        "chars.rows": vocabulary.chars.rows,
        "bigrams.codes": vocabulary.bigrams.codes,
        "bigrams.rows": vocabulary.bigrams.rows,
        "word_rows": vocabulary.word_rows,
    }
    arrays |= {name: values for name in _OPTIONAL if (values := getattr(vocabulary, name)) is not None}
    components = vocabulary.components
    if components is not None:
        arrays |= {f"{_COMPONENTS}{name}": values for name, values in components.arrays().items()}
    save_file(arrays, folder / VOCABULARY)
    lexicon.save(folder / LEXICON)
    return {
        "n_rows": vocabulary.n_rows,
        "n_groups": vocabulary.n_groups,
        "gazetteers": list(vocabulary.gazetteers),
        "word_labels": list(vocabulary.word_labels),
        "lexicon_fingerprint": lexicon.fingerprint,
    } | ({} if components is None else {_N_COMPONENTS: components.n_components})


def load_words(folder: Path, facts: JsonObject, names: NamesList | None = None) -> tuple[Vocabulary, Lexicon]:
    """The vocabulary and lexicon of a model folder whose manifest is `facts`; `names` replaces its list of names.

    Raises:
        ModelError: one of them is damaged, or the lexicon is not that of the model.
        LexiconError: the model cannot read `names` (see names_of_model.with_names).
    """
    try:
        lexicon = Lexicon.load(folder / LEXICON)
    except LexiconError as reason:
        raise ModelError(f"{folder}: its lexicon cannot be used: {reason}") from reason
    expected = str(facts.get("lexicon_fingerprint"))
    if lexicon.fingerprint != expected:
        raise ModelError(
            f"{folder / LEXICON}: a lexicon of another build than the model's ({lexicon.fingerprint[:12]!a}, "
            f"expected {expected[:12]!a}); word ids would refer to wrong vectors. Restore the lexicon that was saved "
            "with the model; add words of your own with lexicon.add"
        )
    with must_fit_manifest(folder):
        arrays = arrays_in(map_file(folder / VOCABULARY))
        vocabulary = Vocabulary(
            chars=CodeTable(arrays["chars.codes"], arrays["chars.rows"]),
            bigrams=CodeTable(arrays["bigrams.codes"], arrays["bigrams.rows"]),
            word_rows=arrays["word_rows"],
            n_tuned=tuple(facts["n_tuned"]),
            n_rows=tuple(facts["n_rows"]),
            n_groups=facts.get("n_groups", 1),  # not in folders of version 0.1
            gazetteers=tuple(facts.get("gazetteers", ())),  # not in folders of older models
            word_labels=tuple(facts.get("word_labels", ())),  # not in folders of older models
            components=_components(arrays, facts),
            **{name: arrays[name] for name in _OPTIONAL if name in arrays},
        )
        check_vocabulary(vocabulary)
        if len(vocabulary.word_rows) != len(lexicon):
            raise ValueError(f"{len(vocabulary.word_rows)} word rows for a lexicon of {len(lexicon)} words")
    return (vocabulary, lexicon) if names is None else with_names(vocabulary, lexicon, names)


def _components(arrays: Mapping[str, np.ndarray], facts: JsonObject) -> ComponentTable | None:
    """The components in a vocabulary file; None if the model does not read them."""
    given = {name.removeprefix(_COMPONENTS): x for name, x in arrays.items() if name.startswith(_COMPONENTS)}
    return ComponentTable(**given, n_components=facts[_N_COMPONENTS]) if given else None


@contextmanager
def must_fit_manifest(folder: Path) -> Iterator[None]:
    """A context for reading a model folder; raises a ModelError if its files do not fit the manifest."""
    try:
        yield
    except ModelError:
        raise
    except (
        *(SafetensorError, OSError, LookupError, TypeError, AttributeError, RuntimeError, ValueError),
        *(ArithmeticError, MemoryError),
    ) as reason:
        raise ModelError(
            f"{folder}: weights or vocabulary do not fit the manifest ({_short(reason)}); the folder is damaged or "
            "mixed from two models, copy or save it again"
        ) from reason


def _short(reason: Exception) -> str:
    text = " ".join(str(reason).split())
    return text if len(text) <= 300 else f"{text[:297]}..."


def check_vocabulary(vocabulary: Vocabulary) -> None:
    """Check that all row numbers are rows of the tables, since C reads by them, and that codes and rows fit each other.
    Raises a ValueError if they do not; the message names the array."""
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
