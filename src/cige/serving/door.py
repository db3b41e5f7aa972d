"""Door: uvicorn's HTTP protocol with limits on heads, waiting and connections, and early refusals.

Uvicorn itself collects a URL and headers of any size before the app sees them, and waits for the rest of a request for
ever. Here, a connection has a time for each part of a request, and if there are too many connections, the one that has
waited longest for its client is closed, so that idle ones shut nobody out.

Refusing a request of an overloaded server here takes a fifth of the time that it takes in the app (see `guard`), which
leaves more time for accepted requests. Only plain requests are refused so; pipelined requests, upgrades, requests with
`Expect: 100-continue` and those of web pages, which can only read responses with CORS headers, are passed on to the
guard, which can refuse them too.

Requests that ask to go on with another protocol are answered in HTTP/1.1, which the standard allows. Java's HttpClient
asks for HTTP/2 with each first request, and uvicorn's parser would leave out the body and all that follows.
"""

from __future__ import annotations

import enum
import http
import logging
import math
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from cige.serving.guard import READING_PATHS
from cige.serving.metrics import Metrics
from cige.serving.pace import ARRIVED, METRICS, PACE, Pace
from cige.serving.refusals import Refused, busy
from cige.serving.settings import WAITS, Waits

log = logging.getLogger("cige.serve")
TCP_INFO: int | None = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
URL_BYTES, HEAD_BYTES, HEADERS = 8 << 10, 32 << 10, 100
TICK_S = 0.5  # how often a connection looks at the time
LINGER_S = 2.0  # for which the rest of a refused request is read, or its client might not see the response
EXTRA = 16  # connections over the maximum, for probes alone
PROBES = (b"/healthz", b"/readyz")
_FRAMING = (b"content-length", b"transfer-encoding")  # headers that say how long a body is
_LAST_RECEIVED = struct.Struct("@I")  # tcpi_last_data_recv, milliseconds; at 52 in Linux's struct tcp_info
_PATHS = {path.encode(): path for path in READING_PATHS}


class _Requests:
    """The parser of a connection, which reads on as HTTP/1.1 where a request asks for another protocol."""

    def __init__(self, door: Door):
        self._door = door
        self._begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def _begin(self) -> None:
        self._parser = httptools.HttpRequestParser(self._door)
        with suppress(AttributeError):  # httptools before 0.6.3 has none
            self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def feed_data(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                self._parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as asked:  # after the head, from where this parser reads nothing more
                rest = rest[asked.args[0] :]
            head = self._door.head_again()
            self._begin()
            if head:
                self._parser.feed_data(head)


class _Part(enum.Enum):
    """What a connection waits for."""

    IDLE, HEAD, BODY, ANSWER = range(4)


class Door(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._pace: Pace | None = self.app_state.get(PACE)
        self._metrics: Metrics | None = self.app_state.get(METRICS)
        self._waits: Waits = self.app_state.get(WAITS) or Waits()
        self._socket: socket.socket | None = None
        self._arrived = 0.0
        self._refused_for = 0  # Retry-After of the request that is being refused, in seconds
        self._part, self._since, self._until = _Part.IDLE, 0.0, math.inf
        self._n_fed = self._n_named = self._n_headers = 0  # bytes of the current head in whole pieces; in its parts
        self._n_parsed = 0  # bytes of a body in the current piece
        self._has_begun = False  # whether a request began in the current piece
        self._wrong: Refused | None = None  # why the rest of what arrives is not read
        self._is_extra = self._is_stopping = False
        self._is_again = False  # whether the parser reads the head of `head_again`
        self.parser = cast(httptools.HttpRequestParser, _Requests(self))
        self._unsent, self._unsent_since = 0, 0.0  # bytes of responses that the client has not read

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._socket = transport.get_extra_info("socket")
        self._wait_for(_Part.IDLE, self._waits.head_s)
        self.loop.call_later(TICK_S, self._tick)
        if len(self.connections) > self._waits.connections and not self._make_room():
            self._is_extra = True
            if len(self.connections) > self._waits.connections + EXTRA:
                self._refuse(_too_many_connections(self._waits.connections), lingers=False)

    def data_received(self, data: bytes) -> None:
        if self._wrong is not None:
            return
        self._arrived = time.monotonic() - self._waited()
        part, self._n_parsed, self._has_begun = self._part, 0, False
        super().data_received(data)
        stays = self._part is part and not self._has_begun
        if stays and part in (_Part.HEAD, _Part.BODY) and not self._n_parsed:
            # All of it is in one header, also one after a body in chunks, or in the URL: the parser keeps it.
            self._n_fed += len(data)
            if self._n_fed > HEAD_BYTES and self._wrong is None:
                self._refuse(_too_long_head())

    def shutdown(self) -> None:
        """Close the connection, after the response if the request has arrived; the rest of others is not waited for."""
        self._is_stopping = True
        if self._part is _Part.BODY and not self._refused_for and not self.cycle.response_complete:
            self._refuse(Refused("stopping", "the server is stopping"), lingers=False)
        else:
            super().shutdown()
        if self._part is not _Part.ANSWER:
            self._until = min(self._until, self.loop.time() + LINGER_S)

    def _wait_for(self, part: _Part, seconds: float) -> None:
        self._part, self._since = part, self.loop.time()
        self._until = self._since + seconds

    def _tick(self) -> None:
        """Close the connection if it has waited for too long."""
        if self not in self.connections:
            return
        now = self.loop.time()
        if self.transport.is_closing():
            if now > self._until:  # the client does not read the response
                self.transport.abort()
                return
        elif now > self._until:
            if self._part is _Part.HEAD and self.cycle is not None and not self.cycle.response_complete:
                pass  # of a request that was sent before the one before was answered
            elif self._wrong is None and self._part in (_Part.HEAD, _Part.BODY):
                message = f"the request has not arrived within {now - self._since:.0f} s; send it again"
                self._refuse(Refused("too_slow", message, seconds=round(now - self._since)))
            else:
                self._close()
        elif (unsent := self.transport.get_write_buffer_size()) and unsent == self._unsent:
            if now - self._unsent_since > self._waits.write_s:
                self.transport.abort()
                return
        else:
            self._unsent, self._unsent_since = unsent, now
        self.loop.call_later(TICK_S, self._tick)

    def _close(self) -> None:
        self._until = self.loop.time() + LINGER_S
        self.transport.close()

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for its client: an idle one, or else one with half a request."""
        doors = [one for one in self.connections if isinstance(one, Door) and one is not self]
        others = [one for one in doors if one._part is not _Part.ANSWER and not one.transport.is_closing()]
        if not others:
            return False
        longest = min(others, key=lambda one: (one._part is not _Part.IDLE, one._since))
        if longest._part is _Part.IDLE:
            longest.transport.abort()
        else:
            longest._refuse(_too_many_connections(self._waits.connections), lingers=False)
        return True

    def _refuse(self, wrong: Refused, *, lingers: bool = True) -> None:
        """Answer the request, unless its response has begun, and read nothing more of it."""
        self._wrong = wrong
        has_begun = self.cycle is not None and not self.cycle.response_complete and self.cycle.response_started
        if not has_begun and not self.pipeline and not self.transport.is_closing():
            self.transport.write(_written(wrong, closes=True))
        if self._metrics is not None:
            self._metrics.request("other", wrong.status_code, 0.0)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # nobody reads what the app answers
            self.cycle.message_event.set()
        if lingers:
            self._unset_keepalive_if_required()
            self._part, self._until = _Part.IDLE, self.loop.time() + LINGER_S
            self.flow.resume_reading()
        else:
            self._close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser refused, or what a method below did."""
        if self._wrong is None:
            self._wrong = Refused("not_http", f"given a request that is not HTTP ({msg}); expected HTTP/1.1")
        self._refuse(self._wrong)

    def _waited(self) -> float:
        """Seconds since the operating system received the current data; 0 if that is not known."""
        if self._socket is None or TCP_INFO is None:
            return 0.0
        try:
            (milliseconds,) = _LAST_RECEIVED.unpack_from(self._socket.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 64), 52)
        except (OSError, struct.error):
            return 0.0
        return float(milliseconds) / 1e3

    def head_again(self) -> bytes:
        """What a new parser must know of a request that asked for another protocol, to read its body; b"" without one.

        The callbacks leave it out, since they have read the whole head.
        """
        self._is_again = self._has_body
        if not self._has_body:
            return b""
        closes = not self.parser.should_keep_alive()
        lines = [b"POST / HTTP/" + self.parser.get_http_version().encode()]
        lines += [name + b": " + value for name, value in self.headers if name in _FRAMING]
        lines += [b"connection: close" if closes else b"connection: keep-alive", b"", b""]
        return b"\r\n".join(lines)

    @property
    def _has_body(self) -> bool:
        return any(name in _FRAMING and value.strip(b"0") for name, value in self.headers)

    def on_message_begin(self) -> None:
        if self._is_again:
            return
        super().on_message_begin()
        self._has_begun = True
        self._n_fed = self._n_named = self._n_headers = 0
        self._wait_for(_Part.HEAD, self._waits.head_s)
        self.scope["state"][ARRIVED] = self._arrived

    def on_url(self, url: bytes) -> None:
        if self._is_again:
            return
        super().on_url(url)
        if len(self.url) > URL_BYTES:
            message = f"given a URL of more than {URL_BYTES:,} bytes; send what is long in the body"
            self._stop_parsing(Refused("url_too_long", message, most=URL_BYTES))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_again:
            return
        self._n_named += len(name) + len(value)
        self._n_headers += 1
        if self._n_named > HEAD_BYTES or self._n_headers > HEADERS:
            self._stop_parsing(_too_long_head())
        super().on_header(name, value)

    def _stop_parsing(self, wrong: Refused) -> None:
        self._wrong = wrong
        raise wrong  # the parser passes it to uvicorn, which calls `send_400_response`

    def on_headers_complete(self) -> None:
        if self._is_again:
            self._is_again = False
            return
        self._wait_for(_Part.BODY, self._waits.read_s)
        if self._is_extra and self.url not in PROBES:
            self._stop_parsing(_too_many_connections(self._waits.connections))
        path = _PATHS.get(self.url)
        if (
            path is not None
            and self._pace is not None
            and self._metrics is not None
            and self.parser.get_method() == b"POST"
            and (self.cycle is None or self.cycle.response_complete)
            and not self.expect_100_continue
            and not self.parser.should_upgrade()
            and not any(name == b"origin" for name, _ in self.headers)
        ):
            self._refused_for = self._pace.refuse_for(self._arrived)
            if self._refused_for:
                self._metrics.request(path, 429, 0.0)
                log.info("POST %s 429 0 ms", path)
                return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._n_parsed += len(body)
        if not self._refused_for:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Send the refusal after the body has been received, since clients must be able to finish sending."""
        if self.parser.should_upgrade() and self._has_body:
            return  # the parser leaves out the body, which `_Requests` reads
        self._wait_for(_Part.ANSWER, math.inf)
        if not self._refused_for:
            super().on_message_complete()
            self._rest()
            return
        seconds, self._refused_for = self._refused_for, 0
        stays = self.parser.should_keep_alive()
        self.transport.write(_written(busy(seconds), closes=not stays))
        if not stays:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._rest()

    def _rest(self) -> None:
        """Wait for the next request, if all those that have arrived were answered."""
        if self._part is _Part.ANSWER and (self.cycle is None or self.cycle.response_complete) and not self.pipeline:
            self._wait_for(_Part.IDLE, self._waits.idle_s)
            if self.transport.is_closing():
                self._until = self.loop.time() + (LINGER_S if self._is_stopping else self._waits.write_s)


def _too_long_head() -> Refused:
    message = f"given more than {HEADERS} headers, or {HEAD_BYTES:,} bytes of them; send what is long in the body"
    return Refused("headers_too_long", message, headers_allowed=HEADERS, most=HEAD_BYTES)


def _too_many_connections(most: int) -> Refused:
    message = f"the server has {most:,} connections; try again, and keep fewer of them open"
    return Refused("too_many_connections", message, headers={"retry-after": "1"}, most=most)


def _written(refused: Refused, *, closes: bool) -> bytes:
    """A whole response on the wire."""
    body, status = refused.body, refused.status_code
    headers = {"content-type": "application/json", "x-content-type-options": "nosniff", **refused.headers}
    headers |= {"content-length": str(len(body))} | ({"connection": "close"} if closes else {})
    lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
