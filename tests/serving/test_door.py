"""Door: requests that are refused on the wire, and those that go on to the app."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from door_server import SOON, running

from cige.serving.pace import ARRIVED, METRICS, PACE

BODY = json.dumps({"text": "林晓岚"}).encode()


@pytest.fixture(scope="module")
def served():
    """A server whose app answers 200 with what it read; `pace.refuses` says what the door does."""
    state = SimpleNamespace(refuses=0, arrived=[], counted=[], waits=[])

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            scope["state"] |= {
                PACE: SimpleNamespace(refuse_for=lambda arrived: state.arrived.append(arrived) or state.refuses),
                METRICS: SimpleNamespace(request=lambda *what: state.counted.append(what)),
            }
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        state.waits.append(time.monotonic() - scope["state"][ARRIVED])
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        if body == b"slow":
            await asyncio.sleep(0.05)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    with running(app, log_level="warning") as state.address:
        yield state


@pytest.fixture
def state(served):
    served.refuses = 0
    for noted in (served.arrived, served.counted, served.waits):
        noted.clear()
    return served


@pytest.fixture
def wire(state):
    with socket.create_connection(state.address, timeout=SOON) as found, found.makefile("rb") as answers:
        yield SimpleNamespace(send=found.sendall, answers=answers)


def request(body=BODY, path="/v1/entities", method="POST", *headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def answer(wire):
    """Status, headers and body of the next answer."""
    status = int(wire.answers.readline().split()[1])
    headers = {}
    while (line := wire.answers.readline()) != b"\r\n":
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return status, headers, wire.answers.read(int(headers["content-length"]))


def test_a_refusal_says_when_to_try_again_and_the_connection_stays(state, wire):
    wire.send(request())
    assert answer(wire)[::2] == (200, BODY)
    state.refuses = 3
    for _ in range(2):
        wire.send(request())
        status, headers, body = answer(wire)
        assert (status, headers["retry-after"], headers["content-type"]) == (429, "3", "application/json")
        assert json.loads(body)["error"] == {
            "code": "busy", "message": "too many requests wait; try again in 3 s", "params": {"seconds": 3}
        }  # fmt: skip
    state.refuses = 0
    wire.send(request())
    assert answer(wire)[0] == 200
    assert state.counted == [("/v1/entities", 429, 0.0)] * 2


def test_a_refused_body_is_read_to_its_end(state, wire):
    state.refuses = 1
    whole = request(b"x" * 100_000)
    for k in range(0, len(whole), 30_000):
        wire.send(whole[k : k + 30_000])
        time.sleep(0.01)
    assert answer(wire)[0] == 429
    wire.send(b"POST /v1/lattice HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert answer(wire)[0] == 429
    state.refuses = 0
    wire.send(request())
    assert answer(wire)[::2] == (200, BODY)


@pytest.mark.parametrize(("path", "method"), [("/v1/lexicon", "POST"), ("/healthz", "GET"), ("/v1/entities", "GET")])
def test_what_is_not_read_is_not_refused(state, wire, path, method):
    state.refuses = 1
    wire.send(request(b"", path, method))
    assert answer(wire)[0] == 200


def test_a_client_that_closes_is_answered_and_let_go(state, wire):
    state.refuses = 1
    wire.send(request(BODY, "/v1/entities", "POST", "Connection: close"))
    status, headers, _ = answer(wire)
    assert status == 429 and headers["connection"] == "close" and wire.answers.read() == b""


def test_requests_behind_one_another_are_answered_in_order(state, wire):
    """The second is no matter for the door: an answer to it now would come before that to the first."""
    wire.send(request(b"slow") + request(b"next"))
    assert [answer(wire)[2] for _ in range(2)] == [b"slow", b"next"]
    state.refuses = 1
    wire.send(request(b"one") + request(b"two"))
    assert [answer(wire)[0] for _ in range(2)] == [429, 429]


def test_a_client_that_waits_to_be_told_to_send_goes_on_to_the_app(state, wire):
    state.refuses = 1
    head, _, body = request(BODY, "/v1/entities", "POST", "Expect: 100-continue").partition(b"\r\n\r\n")
    wire.send(head + b"\r\n\r\n")
    assert wire.answers.readline() == b"HTTP/1.1 100 Continue\r\n" and wire.answers.readline() == b"\r\n"
    wire.send(body)
    assert answer(wire)[::2] == (200, BODY)


def test_requests_of_web_pages_go_on_to_the_app(state, wire):
    """A refusal here would lack the headers that a page of another origin needs to read it."""
    state.refuses = 1
    wire.send(request(BODY, "/v1/entities", "POST", "Origin: https://example.org"))
    assert answer(wire)[::2] == (200, BODY)


def test_what_is_no_http_is_answered_with_400(state, wire):
    state.refuses = 1
    wire.send(b"\x00\xff\r\n\r\n")
    assert answer(wire)[0] == 400


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the operating system does not tell")
def test_it_is_known_how_long_a_request_waited_before_it_was_read(state, monkeypatch):
    with contextlib.ExitStack() as until_end:
        first, second = (until_end.enter_context(socket.create_connection(state.address)) for _ in range(2))
        loud, sent = threading.Event(), threading.Event()
        monkeypatch.setattr(state, "refuses", 0)

        class Slow(list):
            def append(self, item):  # stands in for a loop that is busy: it reads nothing meanwhile
                super().append(item)
                if len(self) == 1:
                    loud.set()
                    assert sent.wait(SOON)
                    time.sleep(0.2)

        monkeypatch.setattr(state, "waits", Slow())
        first.sendall(request())
        assert loud.wait(SOON)
        second.sendall(request())
        sent.set()
        second.settimeout(SOON)
        assert second.recv(100)
        assert len(state.waits) == 2 and state.waits[1] > 0.1


ASKS = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB")


@pytest.mark.parametrize("cut", [0, -1, -len(BODY), -len(BODY) - 1, 60])
def test_a_request_that_asks_for_http_2_is_answered_in_http_1(state, wire, cut):
    """Java's HttpClient asks for it unless it is told not to."""
    whole = request(BODY, "/v1/entities", "POST", *ASKS)
    for _ in range(2):
        for part in (whole[:cut], whole[cut:]):
            wire.send(part)
            time.sleep(0.02)
        assert answer(wire)[::2] == (200, BODY)
    wire.send(request())
    assert answer(wire)[::2] == (200, BODY)


def test_what_follows_a_request_that_asks_for_another_protocol_is_read(state, wire):
    empty = request(b"", "/x", "GET", *ASKS)
    chunked = request(b"", "/x", "POST", *ASKS, "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")
    wire.send(2 * empty + chunked + b"3\r\nabc\r\n0\r\n\r\n" + request(BODY, "/x", "POST", *ASKS) + request())
    assert [answer(wire)[::2] for _ in range(5)] == [(200, found) for found in (b"", b"", b"abc", BODY, BODY)]


@pytest.mark.parametrize("headers", [("A: " + 60 * "b",), ASKS[:2]], ids=["plain", "asking for another protocol"])
def test_thousands_of_requests_that_arrive_at_once_are_all_answered(state, wire, headers):
    """The pieces in which they arrive begin and end within heads, which together are longer than a head may be."""
    sending = threading.Thread(target=wire.send, args=(3_000 * request(b"", "/x", "GET", *headers) + request(),))
    sending.start()
    assert [answer(wire)[2] for _ in range(3_001)] == 3_000 * [b""] + [BODY]
    sending.join()


def test_a_body_in_a_wrong_form_after_a_request_for_another_protocol_is_refused(state, wire):
    head = request(b"", "/x", "POST", *ASKS, "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")
    wire.send(head + b"zz\r\n")
    assert answer(wire)[0] == 400
