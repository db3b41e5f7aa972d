"""Connections: heads that are too long, requests that never arrive, and more connections than there may be."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from door_server import running
from running_server import SOON, server

from cige.serving import door
from cige.serving.door import HEAD_BYTES, HEADERS, URL_BYTES
from cige.serving.pace import METRICS
from cige.serving.settings import WAITS, Waits, possible_connections

QUICK = Waits(connections=6, head_s=1.0, read_s=1.0, idle_s=1.0, write_s=0.3)
LARGE = 64 << 20
HEAD = b"POST /v1/entities HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def served():
    """A server whose app answers every body with its length, and `/large` with more than a client's buffer."""
    state = SimpleNamespace(counted=[], waits=QUICK)

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            counts = SimpleNamespace(request=lambda *what: state.counted.append(what))
            scope["state"] |= {METRICS: counts, WAITS: QUICK}
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        n_bytes, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            n_bytes, more = n_bytes + len(message["body"]), message["more_body"]
        body = bytes(LARGE) if scope["path"] == "/large" else str(n_bytes).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "TICK_S", 0.1)
        patch.setattr(door, "LINGER_S", 1.0)
        with running(app, log_level="error", ws="none") as state.address:
            yield state


@pytest.fixture
def connect(served):
    served.counted.clear()
    opened = []

    def connect(sent=b""):
        found = socket.create_connection(served.address, timeout=SOON)
        opened.append(found)
        if sent:
            found.sendall(sent)
        return found

    yield connect
    for found in opened:
        found.close()


def answer(connection):
    """Status and error code of what is answered, or None if the connection is closed without an answer."""
    content = b""
    try:
        while piece := connection.recv(65_536):
            content += piece
    except ConnectionResetError:
        pass
    if not content:
        return None
    head, _, body = content.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    return status, json.loads(body)["error"]["code"] if status != 200 else int(body)


def send_all(connection, content, times):
    for _ in range(times):
        connection.sendall(content)


PIECE = b"a" * (1 << 18)


@pytest.mark.parametrize(
    ("first", "rest", "expected"),
    [
        (HEAD + b"X: ", PIECE, (431, "headers_too_long")),
        (HEAD, PIECE, (431, "headers_too_long")),
        (HEAD + b"".join(b"X%d: 1\r\n" % k for k in range(HEADERS)), b"\r\n", (431, "headers_too_long")),
        (HEAD + b"X: " + b"a" * HEAD_BYTES + b"\r\n\r\n", b"", (431, "headers_too_long")),
        (b"GET /", PIECE, (414, "url_too_long")),
        (b"GET /" + b"a" * URL_BYTES + b" HTTP/1.1\r\n\r\n", b"", (414, "url_too_long")),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", PIECE, (431, "headers_too_long")),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: 1\r\n" * 10_000, (431, "headers_too_long")),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", PIECE, (431, "headers_too_long")),
        (b"\x00\xff\r\n\r\n", b"", (400, "not_http")),
    ],
)
def test_a_long_head_is_refused_while_it_arrives(connect, first, rest, expected):
    """The rest is read and forgotten, or the client could not read the answer."""
    connection = connect(first)
    send_all(connection, rest, 20)
    assert answer(connection) == expected


def test_the_longest_head_is_read(connect):
    many = b"".join(b"X%d: 1\r\n" % k for k in range(HEADERS - 4))
    long = b"X: " + b"a" * (HEAD_BYTES - 2_000) + b"\r\n"
    connection = connect(HEAD + many + long + b"Connection: close\r\nContent-Length: 2\r\n\r\nab")
    assert answer(connection) == (200, 2)
    url = (
        b"POST /" + b"a" * (URL_BYTES - 1) + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\na"
    )
    assert answer(connect(url)) == (200, 1)


def test_a_long_body_in_small_pieces_is_no_head(connect):
    connection = connect(HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
    connection.sendall(b"1\r\na\r\n" * 50_000 + b"0\r\n\r\n")
    assert answer(connection) == (200, 50_000)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", None),
        (b"POST /v1/ent", (408, "too_slow")),
        (HEAD + b"Content-Length: 9\r\n\r\n{", (408, "too_slow")),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", (408, "too_slow")),
    ],
)
def test_what_never_arrives_is_not_waited_for(connect, sent, expected):
    assert answer(connect(sent)) == expected


def test_a_second_request_that_never_arrives_is_not_waited_for_either(connect):
    connection = connect(HEAD + b"Content-Length: 1\r\n\r\na")
    assert connection.recv(1_000).endswith(b"1")
    connection.sendall(HEAD)
    assert answer(connection) == (408, "too_slow")


def test_idle_connections_are_closed_and_used_ones_stay(connect):
    connection = connect()
    for _ in range(3):
        connection.sendall(HEAD + b"Content-Length: 1\r\n\r\na")
        assert connection.recv(1_000).endswith(b"1")
    assert answer(connection) is None


def test_a_client_that_does_not_read_its_answer_is_let_go(connect, served):
    connection = connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    n_read = len(connection.recv(1))
    time.sleep(3 * QUICK.write_s + 1)
    until = time.monotonic() + SOON
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(1 << 20):
            assert time.monotonic() < until
            n_read += len(piece)
    assert n_read < LARGE  # only what was on its way already


@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\n{"])
def test_connections_that_wait_for_their_clients_shut_nobody_out(connect, sent):
    waiting = [connect(sent) for _ in range(5 * QUICK.connections)]
    for _ in range(3):
        connection = connect(HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nab")
        assert answer(connection) == (200, 2)
    assert answer(waiting[0]) in (None, (503, "too_many_connections"))


def test_as_many_connections_as_there_are_files():
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert possible_connections(8) == 8
    assert 8 <= possible_connections(10**9) < soft


@pytest.mark.skipif(sys.platform != "linux", reason="needs the limits of Linux")
def test_a_server_with_few_files_answers_probes_among_idle_connections_and_stops_at_once(tmp_path):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = f"ulimit -n 200; exec {sys.executable} -m cige serve --port {port}"
    process = subprocess.Popen(["bash", "-c", command], env=os.environ)
    waiting: list[socket.socket] = []
    try:
        until = time.monotonic() + SOON
        while True:
            assert process.poll() is None and time.monotonic() < until
            try:
                socket.create_connection(("127.0.0.1", port), timeout=SOON).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        for k in range(250):
            waiting.append(socket.create_connection(("127.0.0.1", port), timeout=SOON))
            waiting[-1].sendall(HEAD.replace(b"x", b"localhost") + b"Content-Length: 9\r\n\r\n{" if k % 2 else b"")
        with socket.create_connection(("127.0.0.1", port), timeout=SOON) as probe:
            probe.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert probe.recv(1_000).startswith(b"HTTP/1.1 200")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM), "30 seconds are for requests that have arrived"
    finally:
        for connection in waiting:
            connection.close()
        if process.poll() is None:
            process.kill()


def test_a_server_refuses_names_of_other_hosts_and_long_heads():
    with server() as (client, _):
        assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 421
        assert client.get("/healthz", headers={"x": "a" * HEAD_BYTES}).status_code == 431
        assert client.get("/" + "a" * URL_BYTES).status_code == 414
        metrics = client.get("/metrics").text
        for status in (421, 431, 414):
            assert f'cige_requests_total{{path="other",status="{status}"}}' in metrics
