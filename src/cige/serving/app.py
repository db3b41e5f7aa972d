"""The FastAPI app: the routes, and the responses to errors."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from cige import __version__
from cige.api import NER
from cige.errors import CigeError, ModelError
from cige.json_text import to_json
from cige.serving import schemas
from cige.serving.batcher import Batcher, Overloaded, Stopping
from cige.serving.guard import Guard
from cige.serving.metrics import Metrics
from cige.serving.model import UNNAMED, described, open_models
from cige.serving.pace import METRICS, PACE, Pace
from cige.serving.page import page, reference
from cige.serving.settings import TOKEN_VARIABLE, Settings
from cige.serving.word_store import StoredWords, StoreError, VersionConflict, WordStore
from cige.serving.work import EntitiesWork, ExplainWork, Reader
from cige.tagging import selection

log = logging.getLogger("cige.serve")
_NO_JSON = "the body is not JSON in UTF-8"
CLIENT_LEFT = 499  # the status of nginx for this case; nobody receives the response


class Refused(Exception):
    """A request that gets an error response with the HTTP status `status`."""

    def __init__(self, status: int, error: str, **headers: str):
        super().__init__(error)
        self.status, self.headers = status, headers


class Json(JSONResponse):
    """A JSON response; texts with lone surrogates are escaped, since UTF-8 cannot encode them."""

    def render(self, content: Any) -> bytes:
        try:
            return to_json(content).encode("utf-8")
        except UnicodeEncodeError:
            return to_json(content, ensure_ascii=True).encode("ascii")


def create_app(
    ner: NER | Mapping[str, NER], settings: Settings, *, token: str | None = None, store: WordStore | None = None
) -> FastAPI:
    """Create an app that serves one or several models.

    Args:
        ner: the model, which gets the name `default`; or models by name, the first of which is the default.
        token: the token that clients must send as `Authorization: Bearer ...`; None allows all clients.
        store: the shared words, of the lexicons of these models in their order; None makes one from
            `settings.lexicon_file`.

    Raises:
        ModelError: no model was given.
    """
    models = {UNNAMED: ner} if isinstance(ner, NER) else dict(ner)
    if not models:
        raise ModelError("no model to serve; give an NER, or a dict of names and NERs")
    return _Server(models, settings, token, store).app


class _Server:
    def __init__(self, models: Mapping[str, NER], settings: Settings, token: str | None, store: WordStore | None):
        self.settings, self.limits = settings, settings.limits
        if store is None:
            path = None if settings.lexicon_file is None else _path(settings.lexicon_file)
            store = WordStore([ner.lexicon for ner in models.values()], path, max_words=self.limits.lexicon_words)
        self.store = store
        self.readers = {name: Reader(name, ner, store, place) for place, (name, ner) in enumerate(models.items())}
        self.metrics = Metrics(settings.metrics_folder)
        self.batcher: Batcher | None = None
        self.app = FastAPI(
            title="cige", version=__version__, lifespan=self._lifespan, docs_url=None, redoc_url=None,
            description="Named entities in Chinese text, read from characters and words together. Bodies may be "
            "compressed with gzip (Content-Encoding: gzip).",
        )  # fmt: skip
        self._add_routes()
        self._add_errors()
        self.pace = Pace(self.limits.answer_s)
        self.app.add_middleware(
            Guard, token=token, body_bytes=self.limits.body_bytes, metrics=self.metrics, pace=self.pace
        )
        if settings.origins:  # around the guard, so that pages can read its refusals
            self.app.add_middleware(
                CORSMiddleware,
                allow_origins=list(settings.origins),
                allow_methods=["GET", "POST"],
                allow_headers=["authorization", "content-encoding", "content-type"],
                expose_headers=["retry-after"],
            )

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        limits = self.limits
        self.batcher = Batcher(
            batch_nodes=limits.batch_nodes,
            waiting_chars=limits.waiting_chars,
            observe=self.metrics.batch,
        )
        self.pace.queue = self.batcher
        try:
            yield {PACE: self.pace, METRICS: self.metrics}
        finally:  # all requests have been answered before
            batcher, self.batcher, self.pace.queue = self.batcher, None, None
            await asyncio.to_thread(batcher.stop, timeout_s=limits.drain_s)

    def _add_routes(self) -> None:
        app = self.app
        errors: dict[int | str, dict[str, Any]] = {
            400: {"model": schemas.ErrorOut, "description": "the body is not JSON in UTF-8, or is damaged gzip"},
            401: {"model": schemas.ErrorOut, "description": "the token is missing or wrong"},
            413: {"model": schemas.ErrorOut, "description": "the request exceeds the limits for one request"},
            415: {"model": schemas.ErrorOut, "description": "the body has a Content-Encoding other than gzip"},
            422: {"model": schemas.ErrorOut, "description": "the request is invalid"},
        }
        waits: dict[int | str, dict[str, Any]] = errors | {
            429: {"model": schemas.ErrorOut, "description": "too many requests; try again after Retry-After seconds"},
            503: {"model": schemas.ErrorOut, "description": "the server is stopping"},
            504: {"model": schemas.ErrorOut, "description": "the deadline has passed"},
        }
        changes: dict[int | str, dict[str, Any]] = errors | {
            409: {"model": schemas.ErrorOut, "description": "the lexicon has another version, or is full"},
            503: {"model": schemas.ErrorOut, "description": "the lexicon cannot be written"},
        }

        def route(path: str, method: str, model: type | None, responses: Any, summary: str) -> Any:
            return app.api_route(
                path, methods=[method], response_model=None, summary=summary, response_class=Json,
                responses=responses | ({200: {"model": model}} if model else {}),
            )  # fmt: skip

        @route("/v1/entities", "POST", schemas.EntitiesOut, waits, "Find the entities of one or more texts")
        async def entities(body: schemas.EntitiesIn, request: Request) -> Response:
            if (body.text is None) == (body.texts is None):
                raise Refused(422, "expected either text (a string) or texts (a list of strings)")
            texts = body.texts if body.texts is not None else [str(body.text)]
            self._check(texts, body, explained=body.explain)
            options = self._options(body)
            work = (
                ExplainWork(texts=texts, **options, removals=True, n_words=body.n_words)
                if body.explain
                else EntitiesWork(texts=texts, **options)
            )
            return Json(await self._read(work, body, request))

        @route("/v1/lattice", "POST", schemas.LatticeOut, waits, "Get the lattice and the entities of a text")
        async def lattice(body: schemas.LatticeIn, request: Request) -> Response:
            self._check([body.text], body, explained=True)
            work = ExplainWork(texts=[body.text], **self._options(body), n_words=body.n_words, svg_width=body.svg_width)
            answer = await self._read(work, body, request)
            (result,) = answer.pop("results")
            return Json(answer | {name: value for name, value in result.items() if name not in ("removals", "n_tried")})

        @route("/v1/lexicon", "GET", schemas.LexiconOut, errors, "List the words that users added and removed")
        async def words(
            offset: int = Query(0, ge=0, description="number of words to skip"),
            limit: int = Query(1000, ge=0, le=100_000, description="maximum number of words to list"),
        ) -> Response:
            now = await asyncio.to_thread(self.store.current)
            entries = now.entries
            listed = [{"text": w.text, "label": w.label, "mode": w.mode} for w in entries[offset : offset + limit]]
            return Json(
                {"version": now.version, "n_base": len(now.lexicons[0]), "n_words": len(entries), "words": listed}
                | {"removed": now.removed}
            )

        @route("/v1/lexicon", "POST", schemas.VersionOut, changes, "Add words, or change their label and mode")
        async def add(body: schemas.AddIn) -> Response:
            self._check_number("words", len(body.words), self.limits.words)
            return self._changed(
                await asyncio.to_thread(self.store.add, schemas.user_words(body.words), version=body.version)
            )

        @route("/v1/lexicon/remove", "POST", schemas.VersionOut, changes, "Remove added words, and hide other words")
        async def remove(body: schemas.RemoveIn) -> Response:
            self._check_number("words", len(body.words), self.limits.words)
            return self._changed(await asyncio.to_thread(self.store.remove, body.words, version=body.version))

        @route("/v1/models", "GET", schemas.ModelsOut, {401: errors[401]}, "List the models")
        async def models() -> Response:
            return Json({"models": list(map(described, self.readers.values()))})

        @route("/v1/model", "GET", schemas.ModelOut, {401: errors[401]}, "Describe the default model and the limits")
        async def model() -> Response:
            named = ("body_bytes", "texts", "chars", "explained_chars", "words", "deadline_s")
            limits = {name: getattr(self.limits, name) for name in named}
            return Json(described(self._reader(None)) | {"cige_version": __version__, "limits": limits})

        @route("/healthz", "GET", schemas.HealthOut, {}, "Check whether the process responds")
        async def healthy() -> Response:
            return Json({"status": "ok"})

        @route("/readyz", "GET", schemas.ReadyOut, {503: changes[503]}, "Check whether requests are accepted")
        async def ready() -> Response:
            if self.batcher is None or not self.batcher.is_alive():
                raise Refused(503, "not ready: requests are not read")
            await asyncio.to_thread(self.store.check)
            return Json({"status": "ready", "waiting": self.batcher.n_jobs})

        @app.get(
            "/metrics", summary="Metrics for Prometheus", response_model=None, response_class=PlainTextResponse,
            responses={401: errors[401]},
        )  # fmt: skip
        async def metrics() -> Response:
            if self.batcher is not None:
                self.metrics.queue(self.batcher.n_jobs, self.batcher.n_chars)
            self.metrics.lexicon((await asyncio.to_thread(self.store.current)).version)
            return Response(await asyncio.to_thread(self.metrics.page), media_type=self.metrics.content_type)

        @app.get("/", include_in_schema=False)
        async def front() -> Response:
            return _html(*page())

        @app.get("/docs", include_in_schema=False)
        async def docs() -> Response:
            return _html(*reference(app.openapi()))

    def _add_errors(self) -> None:
        async def refused(request: Request, error: Exception) -> Response:
            assert isinstance(error, Refused)
            return Json({"error": str(error)}, error.status, headers=error.headers)

        async def invalid(request: Request, error: Exception) -> Response:
            assert isinstance(error, RequestValidationError)
            found = error.errors()
            if any(one["type"] == "json_invalid" for one in found):
                return Json({"error": _NO_JSON}, 400)
            return Json({"error": "; ".join(dict.fromkeys(filter(None, map(_field_error, found))))}, 422)

        async def ours(request: Request, error: Exception) -> Response:
            status = 503 if isinstance(error, StoreError) else 409 if isinstance(error, VersionConflict) else 422
            if status == 503:
                log.error("%s", error)
            return Json({"error": str(error)}, status)

        async def http(request: Request, error: Exception) -> Response:
            assert isinstance(error, HTTPException)
            said = _NO_JSON if error.status_code == 400 else str(error.detail)  # FastAPI has no other reason for 400
            return Json({"error": said}, error.status_code, headers=error.headers)

        async def unforeseen(request: Request, error: Exception) -> Response:
            return Json({"error": "the server failed; its log says how"}, 500)

        handlers = {Refused: refused, RequestValidationError: invalid, CigeError: ours, HTTPException: http}
        for kind, handler in (handlers | {Exception: unforeseen}).items():
            self.app.add_exception_handler(kind, handler)

    def _options(self, body: schemas.ReadIn) -> dict[str, Any]:
        asked = selection.Request.of(min_score=body.min_score, labels=body.labels, types=body.types)
        reader = self._reader(body.model)
        options = {"words": schemas.user_words(body.words), "utf16": body.offsets == "utf16"}
        return {"reader": reader, "request": asked, "consistent": body.consistent} | options

    def _reader(self, name: str | None) -> Reader:
        """The model with that name; the first one if there is no name."""
        if name is None:
            return next(iter(self.readers.values()))
        if name not in self.readers:
            raise Refused(422, f"model: this server has none of that name; expected one of {', '.join(self.readers)}")
        return self.readers[name]

    def _check(self, texts: list[str], body: schemas.ReadIn, *, explained: bool) -> None:
        n_chars = sum(map(len, texts))
        self._check_number("texts", len(texts), self.limits.texts)
        self._check_number("characters", n_chars, self.limits.chars)
        self._check_number("words", len(body.words), self.limits.words)
        if explained:
            self._check_number("characters to explain", n_chars, self.limits.explained_chars)
        if self.settings.log_text:
            for text in texts:
                log.info("text %s", to_json(text, ensure_ascii=True))

    def _check_number(self, what: str, given: int, most: int) -> None:
        if given > most:
            raise Refused(413, f"given {given:,} {what}; at most {most:,} may be in a request")

    def _changed(self, now: StoredWords) -> Response:
        return Json({"version": now.version, "n_words": len(now.entries)})

    async def _read(self, work: EntitiesWork | ExplainWork, body: schemas.ReadIn, request: Request) -> dict[str, Any]:
        """The result of the batcher; if the client disconnects or the time is up, the request leaves the queue."""
        if self.batcher is None:
            raise Refused(503, "the server is not reading requests")
        limit = self.limits.deadline_s
        seconds = limit if body.deadline_ms is None else min(limit, body.deadline_ms / 1e3)
        try:
            future = self.batcher.submit(work, deadline=time.monotonic() + seconds)
        except Overloaded as full:
            raise Refused(429, str(full), **{"Retry-After": str(full.retry_after)}) from None
        except Stopping as stopping:
            raise Refused(503, str(stopping)) from None
        loop = asyncio.get_running_loop()
        over = loop.create_future()  # a single future, since chained futures each take a round of the event loop

        def end(_: Any = None) -> None:
            if not over.done():
                over.set_result(None)

        left = loop.create_task(_client_leaves(request))
        left.add_done_callback(end)
        timer = loop.call_later(seconds, end)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(end))
        try:
            await over
            if future.done() and not future.cancelled():
                found = future.result()
                labels = [entity["label"] for result in found["results"] for entity in result["entities"]]
                self.metrics.answer(work.reader.name, work.n_chars, labels)
                return found
            if left.done():
                raise Refused(CLIENT_LEFT, "the client left")
            raise Refused(504, f"not answered within {1e3 * seconds:,.0f} ms")
        finally:
            timer.cancel()
            left.cancel()
            future.cancel()


async def _client_leaves(request: Request) -> None:
    """Returns when the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _field_error(error: Any) -> str:
    """The error message of one field, without its value; empty for the second of a word's two alternative forms."""
    where = ".".join(str(part) for part in error["loc"] if part not in ("body", "WordIn", "function-wrap[wrap()]"))
    if not where:
        return "the body: expected a JSON object, and the header Content-Type: application/json"
    if error["type"] == "is_instance_of":
        return "" if error["loc"][-1] == "is-instance[str]" else f"{where}: Input should be a string"
    if error["type"] == "model_attributes_type":
        return f"{where}: Input should be a string, or an object with text, label and mode"
    return f"{where}: {error['msg']}"


def _html(content: str, policy: str) -> Response:
    kept = {"content-security-policy": policy, "cache-control": "no-cache", "referrer-policy": "no-referrer"}
    return HTMLResponse(content, headers=kept)


def _path(name: str) -> Any:
    from pathlib import Path

    return Path(name).expanduser()


def app_of_worker() -> FastAPI:
    """The app of a worker process, according to `Settings.from_environment` and the token in the environment.

    Raises:
        CigeError: the model or the shared words cannot be read.
    """
    settings = Settings.from_environment()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    log.setLevel(logging.INFO if settings.log_requests or settings.log_text else logging.WARNING)
    return create_app(open_models(settings), settings, token=os.environ.get(TOKEN_VARIABLE) or None)
