"""A pipeline with the inputs and outputs of `transformers.pipeline("token-classification")`.

    find = pipeline("token-classification", aggregation_strategy="simple")
    find("李明在北京。")   # [{"entity_group": "PER", "score": 0.99, "word": "李明", "start": 0, "end": 2}, ...]

Transformers itself is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, get_args

from cige.entities.entity import Entity
from cige.errors import CigeError
from cige.tagging.finder import EntityFinder
from cige.text.windows import OVERLAP

Aggregation = Literal["none", "simple", "first", "average", "max"]
AGGREGATIONS = get_args(Aggregation)
TASKS = ("token-classification", "ner")  # two names of one task
Options: TypeAlias = Mapping[str, Any]  # those of DEFAULTS
DEFAULTS: Options = {"aggregation_strategy": "none", "stride": None, "ignore_labels": ("O",), "batch_size": 16}


def pipeline(
    task: str = "token-classification",
    model: EntityFinder | str | PathLike[str] | None = None,
    *,
    device: int | str = "cpu",
    aggregation_strategy: Aggregation = "none",
    stride: int | None = None,
    ignore_labels: Sequence[str] = ("O",),
    batch_size: int = 16,
    **hub_options: Any,
) -> TokenClassification:
    """Create a pipeline.

    Args:
        task: "token-classification" or "ner", as in Transformers.
        model: a model folder, a hub id, None for the bundled model, or the result of `cige.load`.
        device: as in `cige.load` or in Transformers: -1 for the CPU, 0 for the first GPU.
        aggregation_strategy, stride, ignore_labels, batch_size: default options of calls; see `TokenClassification`.
        hub_options: `revision`, `token`, and other options of `cige.load`.

    Raises:
        CigeError: the model cannot be loaded, or the task or an option is unknown.
    """
    from cige.api import load

    if task not in TASKS:
        raise CigeError(f"task={task!r}: expected one of {', '.join(TASKS)}; give a model as model=...")
    if isinstance(device, int):
        device = "cpu" if device < 0 else f"cuda:{device}"
    finder = model if isinstance(model, EntityFinder) else load(model, device, **hub_options)
    options = {"aggregation_strategy": aggregation_strategy, "stride": stride, "ignore_labels": ignore_labels}
    return TokenClassification(finder, batch_size=batch_size, **options)


class TokenClassification:
    """Has the interface of a token classification pipeline of Transformers.

    Options, for all calls or for one: aggregation_strategy: "none" gives a dict per character of an entity, with
    "entity" (B-PER, I-PER), "score", "index" (from 1), "word", "start" and "end". "simple", "first", "average" and
    "max" give a dict per entity, with "entity_group" instead of "entity" and without "index". These four are equivalent
    here, since a CRF predicts whole entities; the score is the probability of the entity. An entity with gaps also has
    its "parts", a list of [start, end], and "word" is their text. stride: minimum overlap of the windows over a long
    text within a clause, in characters. cige always uses overlapping windows, so smaller values have no effect, and
    larger values than this overlap are an error. ignore_labels: labels (or tags, such as "I-PER") to leave out.
    batch_size: number of texts per batch.
    """

    task = "token-classification"

    def __init__(self, finder: EntityFinder, **options: Any):
        self.finder = finder
        self.options = _checked({**DEFAULTS, **options})

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.finder!r}>"

    def __call__(self, inputs: Any, **options: Any) -> Any:
        """The entities of a text as a list of dicts; for a list of texts a list of lists, and otherwise an iterator.

        Args:
            inputs: a str, a list or tuple of str, or any other iterable of str, such as a column of a data set.
            options: the options of the class, for this call.

        Raises:
            CigeError: an option is unknown or out of range.
            TypeError: a text is not a str.
        """
        chosen = _checked({**self.options, **options})
        if isinstance(inputs, str):
            return next(self._read([inputs], chosen))
        if isinstance(inputs, list | tuple):
            return list(self._read(inputs, chosen))
        if not isinstance(inputs, Iterable) or isinstance(inputs, bytes | Mapping):
            raise TypeError(f"given {type(inputs).__name__}; expected a str or an iterable of str")
        return self._read(inputs, chosen)

    def _read(self, texts: Iterable[str], options: Options) -> Iterator[list[dict[str, object]]]:
        by_character = options["aggregation_strategy"] == "none"
        ignored = frozenset(options["ignore_labels"])
        for entities in self.finder.pipe(texts, batch_size=options["batch_size"]):
            if by_character:
                yield [x for e in entities for x in _characters(e) if x["entity"] not in ignored]
            else:
                yield [_group(e) for e in entities if e.label not in ignored]


def _checked(options: Options) -> Options:
    if unknown := sorted(options.keys() - DEFAULTS.keys()):
        raise CigeError(f"no option {', '.join(unknown)}; expected {', '.join(DEFAULTS)}")
    strategy, stride = options["aggregation_strategy"], options["stride"]
    name = getattr(strategy, "value", strategy)  # Transformers has an enumeration with the same names
    if name not in AGGREGATIONS:
        raise CigeError(f"aggregation_strategy={strategy!r}: expected one of {', '.join(AGGREGATIONS)}")
    if stride is not None and (isinstance(stride, bool) or not isinstance(stride, int) or not 0 <= stride <= OVERLAP):
        raise CigeError(f"stride={stride!r}: expected a whole number of characters from 0 to {OVERLAP}")
    if stride is not None and name == "none":
        raise CigeError("stride requires an aggregation_strategy other than 'none'")
    if isinstance(options["ignore_labels"], str):
        raise CigeError(f"ignore_labels={options['ignore_labels']!r}: expected a list of labels")
    if not isinstance(options["batch_size"], int) or options["batch_size"] < 1:
        raise CigeError(f"batch_size={options['batch_size']!r}: expected a whole number of at least 1")
    return {**options, "aggregation_strategy": name}


def _group(entity: Entity) -> dict[str, object]:
    group = {"entity_group": entity.label, "score": entity.score, "word": entity.text}
    group |= {"start": entity.start, "end": entity.end}
    return group | ({"parts": [list(part) for part in entity.parts]} if entity.parts else {})


def _characters(entity: Entity) -> Iterator[dict[str, object]]:
    places = (place for start, end in entity.parts or ((entity.start, entity.end),) for place in range(start, end))
    for place, char in zip(places, entity.text, strict=True):
        tag = f"{'B' if place == entity.start else 'I'}-{entity.label}"
        figures = {"entity": tag, "score": entity.score, "index": place + 1}
        yield figures | {"word": char, "start": place, "end": place + 1}
