"""The same weights in C and in PyTorch on many texts: how many have other entities, and how far scores are apart.

Texts are those of the development parts of Weibo, CLUENER, MSRA and Resume, then lines of the corpus, cut to --chars.
A text differs if one form finds a span or label in it that the other lacks; a tie between two readings may fall either
way, so the highest score of what only one form finds is reported beside the count.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from benchmarks.data import texts_of
from benchmarks.parts.forms import load_forms
from cige.folders.hub import model_folder
from cige.lexicon.text_file import read_lines

TABLES = {"parity": "entities in C and in PyTorch"}
DEV = ("weibo", "cluener", "msra", "resume")


def bench(
    *,
    data_dir: Path,
    corpus: Annotated[Path | None, "raw text, a document or sentence a line; it may be compressed"] = None,
    texts: Annotated[int, "that are read"] = 20_000,
    chars: Annotated[int, "of a part of the corpus"] = 60,
    batch_size: Annotated[int, "texts of a batch"] = 32,
    threads: int = 1,
) -> Iterator[dict[str, Any]]:
    """Both forms of the bundled model, for types as the model has them and for coarse ones."""
    every = list(islice(dev_and_corpus(data_dir, corpus, n_chars=chars), texts))
    forms = load_forms(model_folder(), ("native", "torch")).values()
    for types, some in (("fine", every), ("coarse", every[:: max(1, len(every) // 1000)])):
        answers = (ner.pipe(some, batch_size=batch_size, types=types) for ner in forms)
        both = (
            [{(e.start, e.end, e.label): e.score for e in found} for found in pair]
            for pair in zip(*answers, strict=True)
        )
        yield {"types": types, "characters": sum(map(len, some))} | differences(both)


def dev_and_corpus(data_dir: Path, corpus: Path | None, *, n_chars: int) -> Iterator[str]:
    """Development sentences, then parts of the corpus's lines."""
    for name in DEV:
        if (data_dir / "ner" / name / "dev.bmes").is_file():
            yield from texts_of(data_dir, name, "dev")
    for _, raw in read_lines(corpus) if corpus is not None else ():
        line = raw.decode("utf-8", "replace")
        for first in range(0, len(line), n_chars):
            if part := line[first : first + n_chars].strip():
                yield part


def differences(answers: Iterable[Iterable[dict[Any, float]]], *, tolerance: float = float("inf")) -> dict[str, Any]:
    """What two forms make of the same texts.

    Args:
        answers: for each text the scores of both forms, by what an entity is known by.
        tolerance: scores that are further apart make a text differ too.

    Returns:
        The number of texts, of entities of the first form, of texts with other entities, the largest difference of
        scores of entities that both have, and the highest score of one that only one has (0 where there is none).
    """
    found = {"texts": 0, "entities": 0, "texts_that_differ": 0, "largest_score_difference": 0.0, "highest_of_one": 0.0}
    for one, other in answers:
        apart = max((abs(one[key] - other[key]) for key in one.keys() & other.keys()), default=0.0)
        found["texts"] += 1
        found["entities"] += len(one)
        found["texts_that_differ"] += one.keys() != other.keys() or apart > tolerance
        found["largest_score_difference"] = max(found["largest_score_difference"], apart)
        alone = [(one | other)[key] for key in one.keys() ^ other.keys()]
        found["highest_of_one"] = max([found["highest_of_one"], *alone])
    return found
