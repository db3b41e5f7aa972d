"""Door: uvicorn's HTTP protocol, extended to refuse requests early when the server is overloaded.

Refusing a request here takes a fifth of the time that it takes in the app (see `guard`), which leaves more time for
accepted requests. Only plain requests are refused here; pipelined requests, upgrades, requests with `Expect:
100-continue` and those of web pages, which can only read responses with CORS headers, are passed on to the guard, which
can refuse them too.
"""

from __future__ import annotations

import logging
import socket
import struct
import sys
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from cige.json_text import to_json
from cige.serving.guard import READING_PATHS, refusal
from cige.serving.metrics import Metrics
from cige.serving.pace import ARRIVED, METRICS, PACE, Pace

log = logging.getLogger("cige.serve")
TCP_INFO: int | None = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
_LAST_RECEIVED = struct.Struct("@I")  # tcpi_last_data_recv, milliseconds; at 52 in Linux's struct tcp_info
_PATHS = {path.encode(): path for path in READING_PATHS}


class Door(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._pace: Pace | None = self.app_state.get(PACE)
        self._metrics: Metrics | None = self.app_state.get(METRICS)
        self._socket: socket.socket | None = None
        self._arrived = 0.0
        self._refused_for = 0  # Retry-After of the request that is being refused, in seconds

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._socket = transport.get_extra_info("socket")

    def data_received(self, data: bytes) -> None:
        self._arrived = time.monotonic() - self._waited()
        super().data_received(data)

    def _waited(self) -> float:
        """Seconds since the operating system received the current data; 0 if that is not known."""
        if self._socket is None or TCP_INFO is None:
            return 0.0
        try:
            (milliseconds,) = _LAST_RECEIVED.unpack_from(self._socket.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 64), 52)
        except (OSError, struct.error):
            return 0.0
        return float(milliseconds) / 1e3

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"][ARRIVED] = self._arrived

    def on_headers_complete(self) -> None:
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
        if not self._refused_for:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Send the refusal after the body has been received, since clients must be able to finish sending."""
        if not self._refused_for:
            super().on_message_complete()
            return
        seconds, self._refused_for = self._refused_for, 0
        body = to_json({"error": refusal(seconds)}).encode()
        stays = self.parser.should_keep_alive()
        self.transport.write(
            b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nx-content-type-options: nosniff\r\n"
            + f"retry-after: {seconds}\r\ncontent-length: {len(body)}\r\n".encode()
            + (b"\r\n" if stays else b"connection: close\r\n\r\n")
            + body
        )
        if not stays:
            self.transport.close()
        self.on_response_complete()
