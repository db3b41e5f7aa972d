"""Guard: middleware that checks the token and the body of every request, sets headers and counts requests."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from cige.json_text import to_json
from cige.serving.encodings import Body, BodyRefused
from cige.serving.metrics import Metrics
from cige.serving.pace import ARRIVED, Pace

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/", "/docs", "/openapi.json", "/healthz", "/readyz")  # other paths require the token, if there is one
READING_PATHS = ("/v1/entities", "/v1/lattice")
log = logging.getLogger("cige.serve")


class Guard:
    """ASGI middleware around the whole app.

    Args:
        token: the required token of `Authorization: Bearer ...`; None requires none.
        body_bytes: maximum size of a body, also if it is decompressed; see `Limits`.
        metrics: counts requests by path and status, and times them.
        pace: decides whether there is time for further texts; refusing requests before their bodies are parsed leaves
            more time for accepted requests.
    """

    def __init__(self, app: App, *, token: str | None, body_bytes: int, metrics: Metrics, pace: Pace):
        self._app, self._token, self._body_bytes, self._metrics = app, token, body_bytes, metrics
        self._pace = pace

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 0
        refused: BodyRefused | None = None
        refused_path = "other"
        if is_head := scope["method"] == "HEAD":  # answered like GET, without the body
            scope = {**scope, "method": "GET"}

        async def checked_receive() -> Message:
            nonlocal refused
            message = await receive()
            if message["type"] != "http.request":
                return message
            try:
                content = body.read(message.get("body", b""), is_last=not message.get("more_body"))
            except BodyRefused as reason:
                refused = reason
                raise
            return {**message, "body": content}

        async def noted_send(message: Message) -> None:
            nonlocal status
            if refused is not None and status == 0:  # the app's response to an incomplete body
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-content-type-options", b"nosniff")]
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        headers = {name.lower(): value for name, value in scope["headers"]}
        try:
            if not self._may_enter(scope["path"], scope["method"], headers):
                await _answer(
                    noted_send,
                    401,
                    "expected the header `Authorization: Bearer TOKEN` with the token of this server",
                    (b"www-authenticate", b"Bearer"),
                )
                return
            body = Body(headers, self._body_bytes)
            if (is_reading := scope["path"] in READING_PATHS) and (
                seconds := self._pace.refuse_for(scope.get("state", {}).get(ARRIVED))
            ):
                refused_path = scope["path"]
                again = (b"retry-after", str(seconds).encode())
                while (message := await receive()).get("more_body"):  # clients must be able to finish sending
                    body.count(message.get("body", b""))
                await _answer(noted_send, 429, refusal(seconds), again)
            elif is_reading:
                self._pace.begin()
                try:
                    await self._app(scope, checked_receive, noted_send)
                finally:
                    self._pace.end()
            else:
                await self._app(scope, checked_receive, noted_send)
        except BodyRefused as reason:
            refused = reason
        finally:
            if (answer := refused) is not None and status == 0:
                refused = None
                await _answer(noted_send, answer.status, str(answer), *answer.headers)
            route = scope.get("route")
            path = getattr(route, "path", refused_path)
            self._metrics.request(path, status, time.monotonic() - started)
            log.info(
                "%s %s %d %.0f ms",
                "HEAD" if is_head else scope["method"],
                path,
                status,
                1e3 * (time.monotonic() - started),
            )

    def _may_enter(self, path: str, method: str, headers: dict[bytes, bytes]) -> bool:
        if self._token is None or path in OPEN_PATHS or method == "OPTIONS":
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        same = hmac.compare_digest(given.strip(), self._token.encode("utf-8"))  # in constant time
        return same and kind.lower() == b"bearer"


def refusal(seconds: int) -> str:
    """The message for clients that should try again after so many seconds."""
    return f"too many requests wait; try again in {seconds} s"


async def _answer(send: Send, status: int, error: str, *headers: tuple[bytes, bytes]) -> None:
    body = to_json({"error": error}).encode("utf-8")
    described = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": described})
    await send({"type": "http.response.body", "body": body})
