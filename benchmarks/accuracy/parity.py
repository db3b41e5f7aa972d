"""The same weights in other forms on many texts: how many have other entities, and how far scores are apart.

C in float32 is compared with PyTorch, and each level of instruction sets in each of its precisions with the first level
in float32.

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
from cige.api import NER
from cige.folders.hub import model_folder
from cige.instruction_sets import supported
from cige.lexicon.text_file import read_lines
from cige.runtime import native
from cige.runtime.native_model import NativeModel
from cige.runtime.precision import available
from cige.tagging.selection import Types

TABLES = {"parity": "entities in C and in PyTorch, and at each level of instruction sets"}
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
    """A row for PyTorch with the types as the model has them, one with coarse types, and one for each other form."""
    every = list(islice(dev_and_corpus(data_dir, corpus, n_chars=chars), texts))
    compiled, in_torch = load_forms(model_folder(), ("native", "torch")).values()

    def entities(ner: NER, some: list[str], types: Types = "fine") -> Iterator[dict[Any, float]]:
        for found in ner.pipe(some, batch_size=batch_size, types=types):
            yield {(e.start, e.end, e.label): e.score for e in found}

    kinds: tuple[Types, Types] = ("fine", "coarse")
    for types, some in zip(kinds, (every, every[:: max(1, len(every) // 1000)]), strict=True):
        both = zip(entities(compiled, some, types), entities(in_torch, some, types), strict=True)
        yield {"form": f"PyTorch, {types} types", "characters": sum(map(len, some))} | differences(both)
    forms = [(level, precision) for level in supported() for precision in available(native.load(level))]
    first, *others = (
        (form, NER(NativeModel.load(model_folder(), kernels=form[0], precision=form[1]))) for form in forms
    )
    expected = list(entities(first[1], every))
    for form, ner in others:
        both = zip(expected, entities(ner, every), strict=True)
        yield {"form": ", ".join(form), "characters": sum(map(len, every))} | differences(both)


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
