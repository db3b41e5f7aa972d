"""Trim a trained model to fewer words and bigrams, for a smaller folder, and rename its labels."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from cige.data.tags import tag_set
from cige.data.vocabulary import N_SPECIAL, UNK, CodeTable, Vocabulary
from cige.errors import ModelError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.models.build import build_network
from cige.models.model import LatticeModel
from cige.models.start import without_tables
from cige.nn.embeddings import SplitEmbedding


def trim(model: LatticeModel, *, n_words: int, n_bigrams: int) -> LatticeModel:
    """A smaller model, with `n_words` words (of gazetteers first, then others with a vector) and `n_bigrams` bigrams.

    Words of gazetteers need no vector, since models use only the gazetteers in which they are.

    A lexicon that was built from a vector file is sorted by frequency, so its first words are the most frequent ones.
    Bigrams that occur in training come first, then the others in the order of the vector file. Words that are removed
    are no longer nodes, and bigrams that are removed are represented by their characters. The user words in the model's
    lexicon are removed.

    Args:
        n_words, n_bigrams: maximum numbers; a model with fewer keeps all of them.
    """
    old = model.vocabulary
    has_vector = old.word_rows != UNK
    in_gazetteer = old.word_groups > 1 if old.word_groups is not None else np.zeros_like(has_vector)
    names, others = np.flatnonzero(in_gazetteer)[:n_words], np.flatnonzero(has_vector & ~in_gazetteer)
    word_ids = np.sort(np.concatenate([names, others[: n_words - len(names)]]))
    word_order = old.word_rows[word_ids][has_vector[word_ids]]
    word_rows = np.full(len(word_ids), UNK, np.int32)
    word_rows[has_vector[word_ids]] = np.arange(N_SPECIAL, N_SPECIAL + len(word_order))
    by_row = np.argsort(old.bigrams.rows)[:n_bigrams]
    tables = model.tagger.encoder.embeddings
    kept_rows = (
        np.arange(old.n_rows[0]),
        np.concatenate([np.arange(N_SPECIAL), old.bigrams.rows[by_row]]),
        np.concatenate([np.arange(N_SPECIAL), word_order]),
        np.arange(old.n_rows[0]),
    )
    vocabulary = Vocabulary(
        chars=old.chars,
        bigrams=CodeTable.from_ordered(old.bigrams.codes[by_row]),
        word_rows=word_rows,
        n_tuned=(N_SPECIAL,) * 3,
        n_rows=tuple(map(len, kept_rows[:3])),  # type: ignore[arg-type]
        word_counts=old.word_counts[word_ids] if old.word_counts is not None else None,
        word_groups=old.word_groups[word_ids] if old.word_groups is not None else None,
        n_groups=old.n_groups,
        gazetteers=old.gazetteers,
        word_labels=old.word_labels,
        components=old.components,
    )
    features = model.tagger.encoder.features
    tagger = build_network(model.architecture, model.config, vocabulary, model.tagger.tags, model.widths, features)
    tagger.load_state_dict(without_tables(model.tagger), strict=False)
    small = tagger.encoder.embeddings
    for name, rows in zip(("char", "bigram", "word", "char_word"), kept_rows, strict=True):
        table: SplitEmbedding | None = getattr(small, name)
        if table is not None:
            with torch.no_grad():
                table.load_vectors(getattr(tables, name)(torch.from_numpy(rows.astype(np.int64))))
    words = list(model.lexicon)
    lexicon = Lexicon.from_words((words[k] for k in word_ids.tolist()), spaces=True)
    return replace(model, tagger=tagger.eval(), vocabulary=vocabulary, lexicon=lexicon)


def rename_labels(model: LatticeModel, names: Mapping[str, str]) -> LatticeModel:
    """The same model with some labels renamed, such as {"NR": "PER"}.

    Raises:
        ModelError: the model does not have one of the labels, or two labels would have the same name.
    """
    unknown = sorted(set(names) - set(model.labels))
    renamed = [names.get(label, label) for label in model.labels]
    if UNKNOWN_TYPE in renamed:
        raise ModelError(
            f"a label cannot be called {UNKNOWN_TYPE!r}, which represents types that the model does not know"
        )
    if unknown or len(set(renamed)) < len(renamed):
        problem = f"no label {', '.join(unknown)}" if unknown else f"two labels of one name in {', '.join(renamed)}"
        raise ModelError(f"{problem}; the model's labels are {', '.join(model.labels)}")
    tagger = copy.deepcopy(model.tagger)
    old_places = {_renamed(tag, names): place for place, tag in enumerate(tagger.tags)}
    more = [UNKNOWN_TYPE] if tag_set([UNKNOWN_TYPE], model.scheme)[1] in tagger.tags else []
    tagger.tags = tag_set([*renamed, *more], model.scheme)  # sorted by the new names, so the rows are permuted
    order = torch.tensor([old_places[tag] for tag in tagger.tags])
    with torch.no_grad():
        for rows in (*tagger.output.parameters(), tagger.crf.start, tagger.crf.end):
            rows.copy_(rows[order].clone())
        tagger.crf.transitions.copy_(tagger.crf.transitions[order][:, order].clone())
    word_labels = tuple(names.get(label, label) for label in model.vocabulary.word_labels)
    vocabulary = replace(model.vocabulary, word_labels=word_labels)
    facts = model.label_facts.renamed(names)
    return replace(model, tagger=tagger, vocabulary=vocabulary, labels=sorted(renamed), label_facts=facts)


def _renamed(tag: str, names: Mapping[str, str]) -> str:
    prefix, dash, label = tag.partition("-")
    return prefix + dash + names.get(label, label)
