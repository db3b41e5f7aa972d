"""EntityRecognizer: training, prediction and evaluation with the interface of scikit-learn, on lists or columns.

recognizer = EntityRecognizer(settings={"training.n_epochs": 3})
recognizer.fit(frame["text"], frame["entities"])
frame["found"] = recognizer.predict(frame["text"])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from cige.data.sentence import Sentence, Span
from cige.errors import CigeError, DataError
from cige.integrations.model_bytes import UnpackedModel, files_of
from cige.json_text import JsonObject
from cige.text.counted import counted

if TYPE_CHECKING:
    from cige.api import NER

Triple = tuple[int, int, str]


class EntityRecognizer(BaseEstimator):
    """Learns to find entities from texts and their labelled spans.

    Args:
        model: a model folder, a hub id, or "bundled", which is used for predictions before `fit`; with None, the
            recognizer must be fitted first. Training does not start from this model; use `settings={"start_from":
            ...}`.
        recipe: name or file of a recipe; None for the recipe that starts from the bundled model.
        settings: settings of the recipe, such as `{"training.n_epochs": 3}`.
        output: folder of the run; None for a temporary one. `fit` deletes an earlier run in it.
        held_out: share, 0..1, of the sentences at the end that are held out for choosing the epoch.
        seed: seed of training.
        device: "auto", "cpu" or "cuda".
        min_score: entities with a lower score are not predicted.
        batch_size: number of texts per batch.

    Attributes:
        ner_: the NER, to whose lexicon you can add words; set by `fit` or by the first prediction.
        result_: the result of training (`cige.training.train.TrainResult`); set by `fit`.
        classes_: the labels of the model, sorted; set by `fit`.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        recipe: str | None = None,
        settings: Mapping[str, Any] | None = None,
        output: str | None = None,
        held_out: float = 0.1,
        seed: int = 1,
        device: str = "auto",
        min_score: float = 0.0,
        batch_size: int = 16,
    ):
        self.model = model
        self.recipe = recipe
        self.settings = settings
        self.output = output
        self.held_out = held_out
        self.seed = seed
        self.device = device
        self.min_score = min_score
        self.batch_size = batch_size

    def fit(self, X: Iterable[str], y: Iterable[Iterable[Any]]) -> EntityRecognizer:
        """Train on texts and their entities.

        Args:
            X: the texts: a list, an array or a column.
            y: the entities of each text: tuples (start, end, label), Spans, Entities or dicts with these keys;
                half-open offsets in code points.

        Raises:
            DataError: X and y differ in length, or an entity does not match its text.
            CigeError: a setting is not valid, or training failed.
        """
        from cige.api import load
        from cige.data.reading import write_sentences
        from cige.recipes.shipped import OWN_DATA
        from cige.training.files import own_data_settings
        from cige.training.recipe import load_recipe
        from cige.training.train import train

        sentences = _sentences(X, y)
        n_held_out = max(1, round(self.held_out * len(sentences)))
        if not 0 < self.held_out < 1 or n_held_out >= len(sentences):
            raise DataError(
                f"{len(sentences):,} texts and held_out={self.held_out}: expected a share between 0 and 1 that leaves "
                "texts to learn from and to choose the epoch by"
            )
        with TemporaryDirectory(prefix="cige-") as made:
            data, run = Path(made) / "data.jsonl", Path(self.output or Path(made) / "run")
            write_sentences(data, sentences)
            settings = own_data_settings(data) | {"data.n_held_out": n_held_out}
            recipe = load_recipe(self.recipe or OWN_DATA, settings | dict(self.settings or {}))
            result = train(recipe, run, seed=self.seed, device=self.device, resume=False, show_progress=False)
            self._unpacked = None
            if self.output is None:
                self._unpacked = UnpackedModel(files_of(_with_lexicon(load(result.model))))
            self.ner_ = _with_lexicon(load(result.model if self._unpacked is None else self._unpacked.folder))
        self.result_ = result
        self.classes_ = sorted(self.ner_.labels)
        return self

    def predict(self, X: Iterable[str]) -> list[list[Triple]]:
        """The entities of each text as tuples (start, end, label), sorted.

        Raises:
            NotFittedError: `fit` was not called, and there is no `model`.
        """
        answers = self.predict_entities(X)
        return [[(entity.start, entity.end, entity.label) for entity in entities] for entities in answers]

    def predict_entities(self, X: Iterable[str]) -> list[list[Any]]:
        """Like `predict`, but returns `cige.Entity` objects with texts and scores."""
        return list(self._fitted().pipe(_texts(X), batch_size=self.batch_size, min_score=self.min_score))

    def score(self, X: Iterable[str], y: Iterable[Iterable[Any]]) -> float:
        """Strict micro F1, 0..1: an entity is correct if both offsets and the label are correct."""
        from cige.entities.scores import score

        sentences = _sentences(X, y)
        predicted = self.predict([sentence.text for sentence in sentences])
        return score([s.spans for s in sentences], [[Span(*triple) for triple in spans] for spans in predicted]).f1

    def _fitted(self) -> NER:
        if not hasattr(self, "ner_"):
            if self.model is None:
                raise NotFittedError(
                    f"this {type(self).__name__} is not fitted; call fit, or give a model, such as model='bundled'"
                )
            from cige.api import load

            self.ner_ = _with_lexicon(load(None if self.model == "bundled" else self.model))
        return self.ner_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ner_") or self.model is not None

    def __getstate__(self) -> dict[str, object]:
        """Include the model if its folder is temporary, so that a pickle does not depend on other files."""
        state = dict(super().__getstate__())
        if state.pop("_unpacked", None) is not None:
            state["_files"] = files_of(state.pop("ner_"))
        return state

    def __setstate__(self, state: JsonObject) -> None:
        from cige.api import load

        files = state.pop("_files", None)
        super().__setstate__(state)
        if files is not None:
            self._unpacked = UnpackedModel(files)
            self.ner_ = _with_lexicon(load(self._unpacked.folder))


def _with_lexicon(finder: Any) -> NER:
    from cige.api import NER

    if not isinstance(finder, NER):
        raise CigeError(f"a {type(finder).__name__} was given; expected a model that `cige train` wrote")
    return finder


def _texts(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise DataError("X is one str; expected a list or a column of texts")
    if hasattr(texts, "columns") or not isinstance(texts, Iterable):  # a table would be read as its column names
        raise DataError(f"X is {type(texts).__name__}; expected a list or one column of texts, such as df['text']")
    listed = list(texts)
    for k, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(f"X[{k}] is {type(text).__name__} ({text!r}); expected str, so fill or drop missing values")
    return listed


def _sentences(texts: Iterable[str], entities: Iterable[Iterable[Any]]) -> list[Sentence]:
    listed, labelled = _texts(texts), list(entities)
    if len(listed) != len(labelled):
        raise DataError(f"{len(listed):,} texts and entities of {len(labelled):,}; expected as many")
    return [
        Sentence(text, _spans(k, text, given)) for k, (text, given) in enumerate(zip(listed, labelled, strict=True))
    ]


def _spans(number: int, text: str, given: Iterable[Any]) -> tuple[Span, ...]:
    spans: list[Span] = []
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise DataError(f"y[{number}] is {given!r}; expected a list of (start, end, label), empty if there are none")
    for item in given:
        start, end, label = _triple(number, item)
        if item.get("parts") if isinstance(item, Mapping) else getattr(item, "parts", None):
            raise DataError(f"y[{number}] has {item!r}, an entity with gaps; expected flat entities")
        if not 0 <= start < end <= len(text) or not label:
            raise DataError(
                f"y[{number}]: ({start}, {end}, {label!r}) is no span of a text of {counted(len(text), 'character')}"
            )
        spans.append(Span(start, end, label))
    spans.sort()
    for before, after in pairwise(spans):
        if after.start < before.end:
            raise DataError(f"y[{number}]: {before} and {after} overlap; expected flat entities")
    return tuple(spans)


def _triple(number: int, item: Any) -> Triple:
    try:
        if isinstance(item, Mapping):
            start, end, label = item["start"], item["end"], item["label"]
        elif isinstance(item, Sequence) and not isinstance(item, str):
            start, end, label = item
        else:
            start, end, label = item.start, item.end, item.label
        if not isinstance(label, str):  # None or NaN of a table would be learned as a name
            raise TypeError
        return int(start), int(end), str(label)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DataError(f"y[{number}] has {item!r}; expected (start, end, label), or a dict with these keys") from None
