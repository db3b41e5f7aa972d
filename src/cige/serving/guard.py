"""Guard: middleware that checks the host, the token and the body of every request, sets headers and counts requests."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from functools import partial
from typing import Any

from cige.serving.encodings import Body
from cige.serving.hosts import is_called
from cige.serving.metrics import Metrics
from cige.serving.pace import ARRIVED, Pace
from cige.serving.refusals import Refused, busy, shown

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/", "/docs", "/openapi.json", "/healthz", "/readyz")  # other paths require the token, if there is one
READING_PATHS = ("/v1/entities", "/v1/lattice")
HELD_BODIES = 8  # bodies of the maximum size that may be held at once
log = logging.getLogger("cige.serve")


class Guard:
    """ASGI middleware around the whole app.

    Args:
        token: the required token of `Authorization: Bearer ...`; None requires none.
        hosts: the names that Host headers may have; none allows any.
        body_bytes: maximum size of a body, also if it is decompressed; see `Limits`.
        pace: decides whether there is time for further texts; refusing requests before their bodies are parsed leaves
            more time for accepted requests.
    """

    def __init__(
        self,
        app: App,
        *,
        token: str | None,
        hosts: Collection[str] = (),
        body_bytes: int,
        metrics: Metrics,
        pace: Pace,
    ):
        self._app, self._hosts = app, hosts
        # An environment variable may have any bytes: those that are not UTF-8 are lone surrogates in `token`.
        self._token = None if token is None else token.encode("utf-8", "surrogateescape")
        self._body_bytes, self._metrics, self._pace = body_bytes, metrics, pace
        self._n_held = 0  # bytes of bodies whose requests have not been answered

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, partial(_next_event, receive), send)
            return
        started, status, n_held = time.monotonic(), 0, 0
        refused_path, is_reading, is_taken = "other", scope["path"] in READING_PATHS, False
        if is_head := scope["method"] == "HEAD":  # answered like GET, without the body
            scope = {**scope, "method": "GET"}

        async def checked_receive() -> Message:
            nonlocal n_held, is_taken
            message = await receive()
            if message["type"] != "http.request":
                return message
            content = body.read(message.get("body", b""), is_last=not message.get("more_body"))
            n_held += len(content)
            self._n_held += len(content)
            if self._n_held > HELD_BODIES * self._body_bytes and n_held < self._n_held:
                raise busy(1)
            if is_reading and not is_taken and not message.get("more_body"):
                is_taken = True  # one whose client sends no more delays nobody, so it does not count before
                self._pace.begin()
            return {**message, "body": content}

        async def noted_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-content-type-options", b"nosniff")]
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        headers = {name.lower(): value for name, value in scope["headers"]}
        try:
            self._check_entry(scope, headers)
            body = Body(headers, self._body_bytes)
            if is_reading and (seconds := self._pace.refuse_for(scope.get("state", {}).get(ARRIVED))):
                refused_path = scope["path"]
                while (message := await receive()).get("more_body"):  # clients must be able to finish sending
                    body.count(message.get("body", b""))
                raise busy(seconds)
            await self._app(scope, checked_receive, noted_send)
        except Refused as refused:
            if status:  # the response has begun
                raise
            await _answer(noted_send, refused)
        except asyncio.CancelledError:  # the server stops, and waits for this request no longer
            if not status:
                reason = "the server is stopping, and the request took longer than it waits for; send it again"
                await _answer(noted_send, Refused("stopping", reason))
        finally:
            self._n_held -= n_held
            if is_taken:
                self._pace.end()
            route = scope.get("route")
            path = getattr(route, "path", refused_path)
            seconds_taken = time.monotonic() - started
            self._metrics.request(path, status, seconds_taken)
            log.info("%s %s %d %.0f ms", "HEAD" if is_head else scope["method"], path, status, 1e3 * seconds_taken)

    def _check_entry(self, scope: MutableMapping[str, Any], headers: dict[bytes, bytes]) -> None:
        """Raise Refused if the request calls another host, or has no token where one is required."""
        if not is_called(scope["headers"], self._hosts):
            given = shown(headers.get(b"host", b"").decode("latin-1"))
            message = (
                f"given Host: {given}; expected one of {', '.join(self._hosts)}; start the server with "
                "--allow-host NAME if it has another name"
            )
            raise Refused("wrong_host", message, headers={"connection": "close"}, given=given)
        if self._token is None or scope["path"] in OPEN_PATHS or scope["method"] == "OPTIONS":
            return
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        same = hmac.compare_digest(token.strip(), self._token)  # in constant time
        if not (same and kind.lower() == b"bearer"):
            message = "expected the header `Authorization: Bearer TOKEN` with the token of this server"
            raise Refused("no_token", message, headers={"www-authenticate": "Bearer"})


async def _next_event(receive: Receive) -> Message:
    """The next event of the life of the server; one that must end at once, as after a second Ctrl-C, ends in order."""
    try:
        return await receive()
    except asyncio.CancelledError:
        return {"type": "lifespan.shutdown"}


async def _answer(send: Send, refused: Refused) -> None:  # half the time of a `Response`
    body = refused.body
    headers = {"content-type": "application/json", "content-length": str(len(body)), **refused.headers}
    described = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status_code, "headers": described})
    await send({"type": "http.response.body", "body": body})
