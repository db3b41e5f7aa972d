"""An ML backend for Label Studio, which pre-annotates tasks over Label Studio's HTTP protocol.

    CIGE_MODEL=runs/own uvicorn --factory cige.integrations.label_studio:app --port 9090

In Label Studio, add http://localhost:9090 under Settings > Model. `predictions` returns the same without a server.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from cige.errors import CigeError, DataError
from cige.json_text import JsonObject
from cige.tagging.finder import EntityFinder

if TYPE_CHECKING:
    from fastapi import FastAPI

MODEL_VARIABLE = "CIGE_MODEL"
_TEXT_TAGS = ("Text", "HyperText", "Paragraphs")


@dataclass(frozen=True)
class Interface:
    """The parts of a labelling interface that concern the labels of a text.

    Attributes:
        from_name, to_name: the names of the Labels tag and of the Text tag.
        field: the field of the data of a task that contains the text.
        labels: label of the model, in lower case -> label of the interface.
        min_score: the interface's `model_score_threshold`.
    """

    from_name: str
    to_name: str
    field: str
    labels: Mapping[str, str]
    min_score: float = 0.0

    @classmethod
    def parse(cls, label_config: str) -> Interface:
        """Read the XML of a labelling interface.

        A label of the interface represents the labels of the model that its `predicted_values` list, and those that are
        equal to its value or alias, ignoring case.

        Raises:
            DataError: it is not XML, or has no Labels tag that labels a Text tag.
        """
        if "<!" in label_config.replace("<!--", ""):
            raise DataError("the labelling interface declares a document type or entities; expected tags alone")
        try:
            root = ElementTree.fromstring(label_config)
        except ElementTree.ParseError as reason:
            raise DataError(f"the labelling interface is no XML ({reason})") from None
        texts = {tag.get("name"): tag for name in _TEXT_TAGS for tag in root.iter(name)}
        for control in root.iter("Labels"):
            text = texts.get(control.get("toName"))
            value = "" if text is None else text.get("value", "")
            if text is not None and text.tag == "Text" and value.startswith("$"):
                return cls(
                    control.get("name", ""),
                    control.get("toName", ""),
                    value[1:],
                    _label_map(control.iter("Label")),
                    _threshold(control.get("model_score_threshold")),
                )
        raise DataError(
            'the labelling interface labels no text; expected <Labels name="label" toName="text"> with a Label for '
            'each type, and <Text name="text" value="$text"/>'
        )


def _label_map(tags: Iterable[ElementTree.Element]) -> dict[str, str]:
    names: dict[str, str] = {}
    for tag in tags:
        value = tag.get("value", "")
        for name in (value, tag.get("alias", ""), *tag.get("predicted_values", "").split(",")):
            if name.strip():
                names.setdefault(name.strip().lower(), value)
    return names


def _threshold(given: str | None) -> float:
    try:
        value = float(given or 0)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise DataError(f'model_score_threshold="{given}": expected a number from 0 to 1')
    return value


def predictions(
    finder: EntityFinder, tasks: Sequence[Mapping[str, Any]], label_config: str, *, model_version: str = "cige"
) -> list[JsonObject]:
    """A prediction for each task, in the format of Label Studio.

    Offsets are in code points, like those of Label Studio for Text tags. Entities whose label the interface does not
    have are left out, and so are entities with gaps, which a region cannot have. The score of a prediction is the mean
    of the scores of its regions, or 1 if there are none.

    Args:
        tasks: dicts with `data`, as Label Studio sends or exports them.

    Raises:
        DataError: the interface does not label text, or a task has no text in the field of the interface.
    """
    interface = Interface.parse(label_config)
    texts = [_text_of(number, task, interface.field) for number, task in enumerate(tasks, 1)]
    made = []
    for text, entities in zip(texts, finder.pipe(texts, min_score=interface.min_score), strict=True):
        regions: list[JsonObject] = []
        for entity in entities:
            label = interface.labels.get(entity.label.lower())
            if label is None or entity.parts:
                continue
            key = f"{interface.from_name} {entity.start} {entity.end} {label} {text}"
            value = {"start": entity.start, "end": entity.end, "text": entity.text, "labels": [label]}
            regions.append(
                {
                    "id": hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:10],
                    "from_name": interface.from_name,
                    "to_name": interface.to_name,
                    "type": "labels",
                    "value": value,
                    "score": entity.score,
                }
            )
        score = sum(region["score"] for region in regions) / len(regions) if regions else 1.0
        made.append({"result": regions, "score": score, "model_version": model_version})
    return made


def _text_of(number: int, task: Any, field: str) -> str:
    data = task.get("data", task) if isinstance(task, Mapping) else None
    text = data.get(field) if isinstance(data, Mapping) else None
    if not isinstance(text, str):
        raise DataError(f"task {number} has no text in data.{field}; expected a string there, as the interface says")
    return text


def create_app(finder: EntityFinder, *, model_version: str | None = None) -> FastAPI:
    """Create the server with the routes /health, /setup, /predict, /webhook and /metrics of Label Studio.

    It does not train models: export the annotations and train with `cige train --data`. It has no authentication, so it
    should only be reachable by Label Studio.
    """
    from fastapi import FastAPI, Request
    from fastapi.responses import JSONResponse

    from cige import __version__

    version = model_version or f"cige {__version__}"
    made = FastAPI(title="cige for Label Studio", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)

    @made.exception_handler(CigeError)
    def refuse(_: Request, error: CigeError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=422)

    @made.get("/")
    @made.get("/health")
    def health() -> JsonObject:
        return {"status": "UP", "model_class": type(finder).__name__, "labels": finder.labels}

    @made.get("/metrics")
    def metrics() -> JsonObject:
        return {}

    @made.post("/setup")
    def setup(body: JsonObject) -> dict[str, str]:
        if body.get("schema"):  # that of the project; the response is about its next predictions
            Interface.parse(str(body["schema"]))
        return {"model_version": version}

    @made.post("/predict")
    def predict(body: JsonObject) -> JsonObject:
        tasks, config = body.get("tasks"), body.get("label_config")
        if not isinstance(tasks, list) or not isinstance(config, str):
            raise DataError("expected tasks (a list) and label_config (the XML of the labelling interface)")
        return {"results": predictions(finder, tasks, config, model_version=version), "model_version": version}

    @made.post("/webhook", status_code=201)
    @made.post("/train", status_code=201)
    def not_trained(body: JsonObject) -> dict[str, str]:
        return {"status": "ignored", "detail": "this backend does not train; export and use cige train --data"}

    return made


def app() -> FastAPI:
    """The server for uvicorn, with the model of $CIGE_MODEL (a folder or hub id; by default, the bundled model)."""
    from cige.api import load

    return create_app(load(os.environ.get(MODEL_VARIABLE) or None))
