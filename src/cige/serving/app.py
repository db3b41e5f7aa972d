"""The FastAPI app: the routes, and how a request waits for its result."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel
from starlette.middleware.cors import CORSMiddleware

from cige import __version__
from cige.api import NER
from cige.errors import ModelError, WordListWarning
from cige.json_text import json_bytes, to_json
from cige.lexicon.report import LoadReport
from cige.serving import schemas
from cige.serving.answers import Answer
from cige.serving.aside import Aside, Overloaded, Stopping
from cige.serving.batcher import Batcher
from cige.serving.explained import ExplainWork
from cige.serving.failures import add_error_responses
from cige.serving.guard import Guard
from cige.serving.metrics import Metrics
from cige.serving.model import UNNAMED, described, open_models
from cige.serving.pace import METRICS, PACE, Pace
from cige.serving.page import page, reference
from cige.serving.parsing import bounded_route
from cige.serving.refusals import Refused, busy, shown, too_many
from cige.serving.schemas import CHANGE_ERRORS, ERRORS, WAIT_ERRORS
from cige.serving.settings import WAITS, Settings, Waits, possible_connections, token_of_environment
from cige.serving.word_store import StoredWords, WordStore, usable
from cige.serving.work import EntitiesWork, Options, Reader
from cige.tagging import selection

log = logging.getLogger("cige.serve")
STUCK_S = 10.0  # of one batch, or after a deadline; the longest batch takes less than a second


class Json(JSONResponse):
    def render(self, content: BaseModel) -> bytes:
        return json_bytes(content.model_dump())


def create_app(
    ner: NER | Mapping[str, NER], settings: Settings, *, token: str | None = None, store: WordStore | None = None
) -> FastAPI:
    """Create an app that serves one or several models.

    Args:
        ner: the model, which gets the name `default`; or models by name, the first of which is the default.
        token: what clients must send as `Authorization: Bearer ...`; None allows all clients.
        store: the shared words of these models in their order; None makes one from `settings.lexicon_file`.

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
            path = None if settings.lexicon_file is None else Path(settings.lexicon_file).expanduser()
            store = WordStore([ner.lexicon for ner in models.values()], path, max_words=self.limits.lexicon_words)
        self.store = store
        self.readers = {name: Reader(name, ner, store, place) for place, (name, ner) in enumerate(models.items())}
        self.metrics = Metrics(settings.metrics_folder)
        self.queues: tuple[Batcher, Aside] | None = None  # while requests are read
        self.app = FastAPI(
            title="cige", version=__version__, lifespan=self._lifespan, docs_url=None, redoc_url=None,
            redirect_slashes=False,  # to an address with http, also where a proxy has TLS
            description="Named entities in Chinese text, read from characters and words together. Bodies may be "
            "compressed with gzip (Content-Encoding: gzip).",
        )  # fmt: skip
        self.app.router.route_class = bounded_route(self.limits)
        self._add_routes()
        add_error_responses(self.app)
        self.pace = Pace(self.limits.answer_s)
        self.app.add_middleware(
            Guard, token=token, hosts=settings.hosts, body_bytes=self.limits.body_bytes, metrics=self.metrics,
            pace=self.pace,
        )  # fmt: skip
        if settings.origins:  # around the guard, so that pages can read its refusals
            self.app.add_middleware(
                CORSMiddleware,
                allow_origins=list(settings.origins),
                allow_methods=["GET", "POST"],
                allow_headers=["authorization", "content-encoding", "content-type"],
                expose_headers=["retry-after"],
            )

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[Mapping[str, object]]:
        limits = self.limits
        batcher = Batcher(
            batch_nodes=limits.batch_nodes, waiting_chars=limits.waiting_chars, observe=self.metrics.batch
        )
        self.queues = queues = batcher, Aside(waiting_chars=limits.waiting_chars)
        self.pace.queue = batcher
        waits = Waits(connections=possible_connections(limits.connections), read_s=limits.read_s)
        try:
            yield {PACE: self.pace, METRICS: self.metrics, WAITS: waits}
        finally:  # all requests have been answered before
            self.queues = self.pace.queue = None
            for queue in queues:
                await asyncio.to_thread(queue.stop, timeout_s=limits.drain_s)

    def _add_routes(self) -> None:
        app = self.app

        def route(path: str, method: str, model: type | None, responses: schemas.Responses, summary: str) -> Any:
            return app.api_route(
                path, methods=[method], response_model=None, summary=summary, response_class=Json,
                responses=responses | ({200: {"model": model}} if model else {}),
            )  # fmt: skip

        @route("/v1/entities", "POST", schemas.EntitiesOut, WAIT_ERRORS, "Find the entities of one or more texts")
        async def entities(body: schemas.EntitiesIn, request: Request) -> Response:
            if (body.text is None) == (body.texts is None):
                raise Refused("text_or_texts", "expected either text (a string) or texts (a list of strings)")
            texts = body.texts if body.texts is not None else [str(body.text)]
            self._check(texts, explained=body.explain)
            options = self._options(body)
            work = (
                ExplainWork(texts, options, removals=True, n_words=body.n_words)
                if body.explain
                else EntitiesWork(texts, options)
            )
            return await self._read(work, body, request)

        @route("/v1/lattice", "POST", schemas.LatticeOut, WAIT_ERRORS, "Get the lattice and the entities of a text")
        async def lattice(body: schemas.LatticeIn, request: Request) -> Response:
            self._check([body.text], explained=True)
            options = self._options(body)
            work = ExplainWork([body.text], options, n_words=body.n_words, svg_width=body.svg_width, as_lattice=True)
            return await self._read(work, body, request)

        @route("/v1/lexicon", "GET", schemas.LexiconOut, ERRORS, "List the words that users added and removed")
        async def words(
            offset: int = Query(0, ge=0, description="number of words to skip"),
            limit: int = Query(1000, ge=0, le=100_000, description="maximum number of words to list"),
        ) -> Response:
            now = await asyncio.to_thread(self.store.current)
            entries = now.entries
            return Json(
                schemas.LexiconOut(
                    version=now.version,
                    n_base=len(now.lexicons[0]),
                    n_words=len(entries),
                    words=[schemas.WordOut(**asdict(word)) for word in entries[offset : offset + limit]],
                    removed=now.removed,
                )
            )

        @route("/v1/lexicon", "POST", schemas.VersionOut, CHANGE_ERRORS, "Add words, or change their label and mode")
        async def add(body: schemas.AddIn) -> Response:
            words = schemas.user_words(body.words)
            return self._changed(await asyncio.to_thread(self.store.add, words, version=body.version))

        @route(
            "/v1/lexicon/remove", "POST", schemas.VersionOut, CHANGE_ERRORS, "Remove added words, and hide other words"
        )
        async def remove(body: schemas.RemoveIn) -> Response:
            return self._changed(await asyncio.to_thread(self.store.remove, body.words, version=body.version))

        @route("/v1/models", "GET", schemas.ModelsOut, {401: ERRORS[401]}, "List the models")
        async def models() -> Response:
            return Json(schemas.ModelsOut(models=[described(reader) for reader in self.readers.values()]))

        @route("/v1/model", "GET", schemas.ModelOut, {401: ERRORS[401]}, "Describe the default model and the limits")
        async def model() -> Response:
            named = ("body_bytes", "texts", "chars", "explained_chars", "words", "deadline_s")
            limits = {name: getattr(self.limits, name) for name in named}
            served = dict(described(self._reader(None)))
            return Json(schemas.ModelOut(**served, cige_version=__version__, limits=limits))

        @route("/healthz", "GET", schemas.HealthOut, {}, "Check whether the process responds")
        async def healthy() -> Response:
            return Json(schemas.HealthOut(status="ok"))

        @route("/readyz", "GET", schemas.ReadyOut, {503: CHANGE_ERRORS[503]}, "Check whether requests are accepted")
        async def ready() -> Response:
            queues = self.queues
            if queues is None or not all(queue.is_alive() for queue in queues):
                raise Refused("not_ready", "not ready: requests are not read")
            if (stuck_s := max(queue.stuck_for for queue in queues)) > STUCK_S:
                message = f"not ready: the current work has not ended for {stuck_s:,.0f} s; restart the server"
                raise Refused("stuck", message, seconds=round(stuck_s))
            await asyncio.to_thread(self.store.check)
            return Json(schemas.ReadyOut(status="ready", waiting=sum(queue.n_jobs for queue in queues)))

        @app.get(
            "/metrics", summary="Metrics for Prometheus", response_model=None, response_class=PlainTextResponse,
            responses={401: ERRORS[401]},
        )  # fmt: skip
        async def metrics() -> Response:
            if (queues := self.queues) is not None:
                self.metrics.queue(sum(queue.n_jobs for queue in queues), sum(queue.n_chars for queue in queues))
            self.metrics.lexicon((await asyncio.to_thread(self.store.current)).version)
            return Response(await asyncio.to_thread(self.metrics.page), media_type=self.metrics.content_type)

        @app.get("/", include_in_schema=False)
        async def front() -> Response:
            return _html(*page())

        @app.get("/docs", include_in_schema=False)
        async def docs() -> Response:
            return _html(*reference(app.openapi()))

    def _options(self, body: schemas.ReadIn) -> Options:
        reader = self._reader(body.model)
        if body.consistent and body.nested and reader.ner.label_facts.nested:
            message = (
                "consistent: true was given; this model finds nested entities; leave it out, or give nested: false"
            )
            raise Refused("not_possible", message)
        return Options(
            request=selection.Request.of(
                min_score=body.min_score, labels=body.labels, types=body.types, nested=body.nested
            ),
            reader=reader,
            words=usable(schemas.user_words(body.words)),
            utf16=body.offsets == "utf16",
            consistent=body.consistent,
        )

    def _reader(self, name: str | None) -> Reader:
        """The model with that name; the first one if there is no name."""
        if name is None:
            return next(iter(self.readers.values()))
        if name not in self.readers:
            names = ", ".join(self.readers)
            message = f"model: this server has none of that name; expected one of {names}"
            raise Refused("unknown_model", message, given=shown(name), names=shown(names, 500))
        return self.readers[name]

    def _check(self, texts: list[str], *, explained: bool) -> None:
        n_chars, limits = sum(map(len, texts)), self.limits
        if n_chars > limits.chars:
            raise too_many("too_many_characters", "characters", n_chars, limits.chars, "send fewer texts in each")
        if explained and n_chars > limits.explained_chars:
            code, todo = "too_many_explained_characters", "send the text in parts"
            raise too_many(code, "characters to explain", n_chars, limits.explained_chars, todo)
        if self.settings.log_text:
            for text in texts:
                log.info("text %s", to_json(text, ensure_ascii=True))

    def _changed(self, now: StoredWords) -> Response:
        return Json(schemas.VersionOut(version=now.version, n_words=len(now.entries)))

    async def _read(self, work: EntitiesWork | ExplainWork, body: schemas.ReadIn, request: Request) -> Response:
        """The response; if the client disconnects or the time is up, the work of the request ends."""
        limit = self.limits.deadline_s
        seconds = limit if body.deadline_ms is None else min(limit, body.deadline_ms / 1e3)
        future = self._submitted(work, time.monotonic() + seconds)
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
                answer: Answer = future.result()
                reader = work.options.reader
                self.metrics.answer(reader.name, work.n_chars, answer.labels, reader.ner.labels)
                return Response(answer.body, media_type="application/json")
            if left.done():
                raise Refused("client_left", "the client left")
            milliseconds = round(1e3 * seconds)
            raise Refused("deadline", f"not answered within {milliseconds:,} ms", milliseconds=milliseconds)
        finally:
            timer.cancel()
            left.cancel()
            future.cancel()

    def _submitted(self, work: EntitiesWork | ExplainWork, deadline: float) -> Future[Answer]:
        if self.queues is None:
            raise Refused("not_ready", "the server is not reading requests")
        batcher, aside = self.queues
        try:
            if isinstance(work, ExplainWork):
                return aside.submit(work, deadline=deadline)
            return batcher.submit(work, deadline=deadline)
        except Overloaded as full:
            raise busy(full.retry_after) from None
        except Stopping as stopping:
            raise Refused("stopping", str(stopping)) from None


async def _client_leaves(request: Request) -> None:
    """Returns when the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _html(content: str, policy: str) -> Response:
    headers = {"content-security-policy": policy, "cache-control": "no-cache", "referrer-policy": "no-referrer"}
    return HTMLResponse(content, headers=headers)


def app_of_worker(on_report: Callable[[LoadReport], None] | None = None) -> FastAPI:
    """The app of a worker process, according to `Settings.from_environment` and the token in the environment.

    Args:
        on_report: called with the report of each word list; workers leave it to the process that starts them.

    Raises:
        CigeError: the model or the shared words cannot be read.
    """
    settings = Settings.from_environment()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    log.setLevel(logging.INFO if settings.log_requests or settings.log_text else logging.WARNING)
    with warnings.catch_warnings():
        if on_report is None:
            warnings.simplefilter("ignore", WordListWarning)  # of --names, which that process shows too
        models = open_models(settings, on_report)
    gc.collect()
    gc.freeze()  # what is loaded stays, so that a collection during a large request takes less time
    return create_app(models, settings, token=token_of_environment())
