"""The app of a server in this process, and what is asked of it."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from cige.api import NER
from cige.serving import schemas
from cige.serving.app import create_app
from cige.serving.settings import Settings

TEXT = "昨天阿拉善贺兰草宣布了新的计划。"


def client_of(ner: NER, *, token: str | None = None, **settings: Any) -> TestClient:
    return TestClient(create_app(ner, Settings(**settings), token=token), raise_server_exceptions=False)


def entities(client: TestClient, text: str, **options: Any) -> list[dict[str, Any]]:
    response = client.post("/v1/entities", json={"text": text} | options)
    assert response.status_code == 200, response.text
    body = response.json()
    schemas.EntitiesOut.model_validate(body)
    (result,) = body["results"]
    return result["entities"]


def pairs(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(entity["text"], entity["label"]) for entity in found]
