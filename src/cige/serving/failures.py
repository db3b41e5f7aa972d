"""Failures: the error responses to whatever a request raises, and to methods that a path does not have."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from cige.errors import CigeError
from cige.serving.parsing import NOT_JSON
from cige.serving.refusals import Refused, shown
from cige.serving.word_store import StoreError

log = logging.getLogger("cige.serve")
MOST_TOLD = 5  # mistakes of a request; the others are as many as its items
NO_OBJECT = "the body: expected a JSON object, and the header Content-Type: application/json"
_LISTS = {  # what a field is that was given something else than a list
    "texts": 'expected a list of strings; one string is given as "text"',
    "labels": 'expected a list of labels, such as ["COMPANY"]',
    "words": 'expected a list, such as ["小米"], or of words with labels [{"text": "小米", "label": "COMPANY"}]',
}


def add_error_responses(app: FastAPI) -> None:
    """Answer all errors of an app in one form, `Refused.body`; its routes must have been added before."""
    methods = _methods(app)

    async def refused(request: Request, error: Any) -> Response:
        return error.response()

    async def invalid(request: Request, error: Any) -> Response:
        return _refusal_of_fields(error.errors()).response()

    async def ours(request: Request, error: Exception) -> Response:
        if isinstance(error, StoreError):
            log.error("%s", error)
        code, params = getattr(error, "code", "not_possible"), getattr(error, "params", {})
        return Refused(code, str(error), **params).response()

    async def http(request: Request, error: Any) -> Response:
        if error.status_code == 405:
            return _other_method(request, methods.get(request.scope["path"], ()))
        if error.status_code == 404:
            return Refused("not_found", "given a path that this server does not have; /docs lists its paths").response()
        if error.status_code == 400:  # FastAPI has no other reason for it
            return Refused("not_json", NOT_JSON).response()
        return JSONResponse(
            {"error": {"code": "not_possible", "message": shown(str(error.detail)), "params": {}}}, error.status_code
        )

    async def unforeseen(request: Request, error: Exception) -> Response:
        return Refused("failed", "the server failed; its log says how").response()

    handlers = {Refused: refused, RequestValidationError: invalid, CigeError: ours, HTTPException: http}
    for kind, handler in (handlers | {Exception: unforeseen}).items():
        app.add_exception_handler(kind, handler)


def _methods(app: FastAPI) -> Mapping[str, tuple[str, ...]]:
    """The methods of each path; HEAD is answered where GET is, and OPTIONS everywhere."""
    methods: dict[str, set[str]] = {}
    for route in app.routes:
        if isinstance(route, APIRoute):
            methods.setdefault(route.path, {"OPTIONS"}).update(route.methods or ())
    return {path: tuple(sorted(of | ({"HEAD"} if "GET" in of else set()))) for path, of in methods.items()}


def _other_method(request: Request, methods: tuple[str, ...]) -> Response:
    """The response to a method that the path does not have: OPTIONS lists those that it has, others are refused."""
    allowed = ", ".join(methods)
    if request.method == "OPTIONS":
        return Response(status_code=204, headers={"allow": allowed})
    message = f"given {shown(request.method)}; expected one of {allowed}"
    return Refused("wrong_method", message, headers={"allow": allowed}, methods=allowed).response()


def _refusal_of_fields(errors: Any) -> Refused:
    """The refusal of a request with these mistakes, of which the first few are told, without the values given."""
    first = list(errors[: 4 * MOST_TOLD])  # a wrong word is up to three mistakes, one of each of its forms
    if any(one["type"] == "json_invalid" for one in first):
        return Refused("not_json", NOT_JSON)
    messages = list(dict.fromkeys(filter(None, map(_field_error, first))))
    if NO_OBJECT in messages:
        return Refused("no_object", NO_OBJECT)
    more = "; and more" if len(messages) > MOST_TOLD or len(errors) > len(first) else ""
    fields = ", ".join(dict.fromkeys(one.partition(": ")[0] for one in messages[:MOST_TOLD]))
    return Refused("invalid", "; ".join(messages[:MOST_TOLD]) + more, fields=fields)


def _field_error(error: Any) -> str:
    """The error message of one field, without its value; empty for the second of a word's two alternative forms."""
    parts = [str(part) for part in error["loc"] if part not in ("body", "WordIn", "function-wrap[wrap()]")]
    where = ".".join(shown(part) for part in parts if not part.startswith("function-"))
    if not where:
        return NO_OBJECT
    if error["type"] == "is_instance_of":
        return "" if error["loc"][-1] == "is-instance[str]" else f"{where}: Input should be a string"
    if error["type"] == "list_type" and where in _LISTS:
        return f"{where}: {_LISTS[where]}"
    if error["type"] == "extra_forbidden" and where.startswith("words."):
        return f"{where}: no field of a word; expected text, label and mode"
    if error["type"] == "model_attributes_type":
        return f"{where}: Input should be a string, or an object with text, label and mode"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"
