"""Decode the most probable entities, none of which are in closed stretches or longer than their label allows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import split_tag, tags_to_spans
from cige.lattice.lattice import Lattice
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.user_rules import without_forced


def close(emissions: np.ndarray, lattices: Sequence[Lattice], tags: Sequence[str]) -> np.ndarray:
    """float[B, T, L]: emissions with which no character of a closed stretch is part of an entity."""
    if not any(lattice.closed for lattice in lattices):
        return emissions
    emissions, in_entity = emissions.copy(), np.array([tag != "O" for tag in tags])
    for row, lattice in enumerate(lattices):
        for start, end in lattice.closed:
            emissions[row, start:end, in_entity] = -np.inf
    return emissions


def best_spans(
    crf: NumpyCRF,
    emissions: np.ndarray,
    lattices: Sequence[Lattice],
    *,
    tags: Sequence[str],
    scheme: str,
    max_lengths: Mapping[str, int],
) -> list[list[Span]]:
    """The entities of the best tag sequence of each sentence in which no entity is longer than its label allows.

    Forced stretches have no maximum length, and are left out.

    Args:
        emissions: float[B, T, L] of the B `lattices`; padding may have any value.
        tags: the L tag names in `scheme`.
        max_lengths: label -> maximum length in characters; other labels have no limit.
    """
    paths = crf.decode(emissions, [lattice.n_chars for lattice in lattices])
    decoded = [
        without_forced(tags_to_spans([tags[tag] for tag in path], scheme), lattice)
        for path, lattice in zip(paths, lattices, strict=True)
    ]
    for row, (spans, lattice) in enumerate(zip(decoded, lattices, strict=True)):
        if all(span.end - span.start <= max_lengths.get(span.label, span.end) for span in spans):
            continue  # nearly always
        rules = lattice.rules
        shorter = best_within_lengths(
            crf.trained,
            emissions[row, : lattice.n_chars],
            tags=tags,
            scheme=scheme,
            max_lengths=max_lengths,
            blocked=rules.blocked,
            exempt=[max(0, span.start) for span in rules.forced],
        )
        decoded[row] = without_forced(shorter, lattice)
    return decoded


def best_within_lengths(
    crf: NumpyCRF,
    emissions: np.ndarray,
    *,
    tags: Sequence[str],
    scheme: str,
    max_lengths: Mapping[str, int],
    blocked: Collection[tuple[int, int]] = (),
    exempt: Collection[int] = (),
) -> list[Span]:
    """The entities of the best well-formed tag sequence of one sentence, none longer than its label allows.

    Scores of pairs of tags cannot express a maximum length. Therefore, whole entities are decoded (a segmental Viterbi
    algorithm): the best score of the text up to the end of an entity is the maximum over all beginnings within reach.
    runtime/native/lengths.c is the same in C.

    Args:
        emissions: float[T, L] of the L `tags`, without padding; T is at least 1.
        max_lengths: label -> maximum length in characters; other labels have no limit.
        blocked: spans [start, end) that are not entities.
        exempt: the positions at which entities of any length may begin.
    """
    n_chars, unary = len(emissions), np.asarray(emissions, np.float64)
    labels, opens, inside, closes, single = _places(tags, scheme)
    outside, step = tags.index("O"), crf.transitions
    ends = np.array([outside, *closes, *single])  # tags after which no entity is open
    first_single = 1 + len(labels)
    lengths = np.arange(n_chars) + 2  # of the entities that are closed by a second tag
    is_short = lengths <= np.array([max_lengths.get(label, n_chars) for label in labels])[:, None]
    best = np.full((n_chars, len(ends)), -np.inf)  # of the text up to here, with no entity open after `ends`
    n_best = np.zeros((n_chars, len(labels)), np.int64)  # length of the entity that is closed here
    going = np.full((len(labels), n_chars), -np.inf)  # score of an open entity of 1, 2, ... characters
    for t in range(n_chars):
        reached = unary[t] + (crf.start if t == 0 else (best[t - 1, :, None] + step[ends]).max(0))
        best[t, 0] = reached[outside]
        best[t, first_single:] = -np.inf if (t, t + 1) in blocked else reached[single]
        if t:
            may_close = is_short.copy()
            may_close[:, [t - 1 - start for start in exempt if start < t]] = True
            may_close[:, [t - 1 - start for start, end in blocked if end == t + 1 and start < t]] = False
            closing = going + step[inside, closes][:, None]
            closing[:, 0] = going[:, 0] + step[opens, closes]
            closing[~may_close] = -np.inf
            n_best[t] = lengths[closing.argmax(1)]
            best[t, 1:first_single] = closing.max(1) + unary[t, closes]
            longer = going[:, :-1] + step[inside, inside][:, None]
            longer[:, :1] = going[:, :1] + step[opens, inside][:, None]
            going[:, 1:] = longer + unary[t, inside][:, None]
        going[:, 0] = reached[opens]
    return _traced(best, n_best, crf, ends, [outside, *opens, *single], labels)


def _places(tags: Sequence[str], scheme: str) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The labels, and the numbers of their tags that open, continue and close an entity, or are one of one character.

    In BIO, the last I of an entity closes it, and a B that no I follows is one of one character.
    """
    number = {tag: k for k, tag in enumerate(tags)}
    labels = list(dict.fromkeys(label for _, label in (split_tag(tag, scheme) for tag in tags) if label))
    prefixes = {"BMES": "BMES", "BIOES": "BIES", "BIO": "BIIB"}[scheme]
    opens, inside, closes, single = (np.array([number[f"{p}-{label}"] for label in labels], int) for p in prefixes)
    return labels, opens, inside, closes, single


def _traced(
    best: np.ndarray, n_best: np.ndarray, crf: NumpyCRF, ends: np.ndarray, begins: Sequence[int], labels: Sequence[str]
) -> list[Span]:
    """The entities of the best sequence, from its end; `begins` are the first tags of what ends with the `ends`."""
    spans, t, more = [], len(best) - 1, crf.end[ends]
    while t >= 0:
        k = int((best[t] + more).argmax())
        of_label = (k - 1) % len(labels) if k else 0
        length = 1 if k == 0 or k > len(labels) else int(n_best[t, of_label])
        if k:
            spans.append(Span(t + 1 - length, t + 1, labels[of_label]))
        t, more = t - length, crf.transitions[ends, begins[k]]
    return spans[::-1]
