"""The HTTP server: latency at a steady rate and at overload, and throughput beside `cige predict`.

Requests are sent when they are due, whether or not those before them were answered, and are timed from when they were
due. The server and this program run on one machine and share its cores: `client_late_ms` says how late this program
itself sent requests, and with `--server-nice` it goes before the server, as a client on another machine would. Texts
are cut from a file.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
import numpy as np
import uvloop

from benchmarks.measure import line
from benchmarks.parts.odd_texts import NEWS
from cige.errors import CigeError


def bench(
    *,
    workers: Annotated[int, "of the server"] = 1,
    rate: Annotated[float, "requests per second"] = 50,
    overload: Annotated[float, "requests per second at overload"] = 600,
    server_nice: Annotated[int, "start the server with `nice -n N`"] = 0,
    seconds: Annotated[float, "of each measurement"] = 10,
    length: Annotated[int, "characters of a text"] = 50,
    texts: Annotated[int, "whose throughput is measured"] = 4000,
    file: Annotated[Path, "where texts are cut from"] = NEWS,
) -> dict[str, Any]:
    """Latency, then throughput."""
    many = cut_texts(file, texts, length)
    result: dict[str, Any] = {"workers": workers, "load": os.getloadavg()[0]}
    with server(workers, nice=server_nice) as (address, result["seconds_to_ready"]):
        for name, per_second in (("steady", rate), ("overload", overload)):
            some = cut_texts(file, int(per_second * seconds), length)
            result[name] = summary(uvloop.run(send(address, some, per_second)), per_second)
            print(f"{name}: {line(result[name])}", flush=True)
        result["http_chars_per_second"] = throughput(address, many, 64, 2 * workers)
    result["predict_chars_per_second"] = predict(many)
    result["share"] = result["http_chars_per_second"] / result["predict_chars_per_second"]
    print(line({name: value for name, value in result.items() if isinstance(value, float)}))
    return result


@contextmanager
def server(workers: int, *, nice: int = 0) -> Iterator[tuple[str, float]]:
    """A server on a free port, and how many seconds it took to be ready; its priority is lower by `nice`."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    started = time.perf_counter()
    command = ["nice", "-n", str(nice), sys.executable, "-m", "cige", "serve", "--port", str(port)]
    process = subprocess.Popen([*command, "--workers", str(workers)], stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                if httpx2.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200:
                    break
            except httpx2.TransportError:
                if process.poll() is not None:
                    raise CigeError("the server ended before it was ready; `cige serve` says why") from None
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1/entities", time.perf_counter() - started
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def cut_texts(path: Path, n: int, length: int) -> list[str]:
    """`n` texts of `length` characters; each begins elsewhere, so that no two neighbours are alike."""
    text = path.read_text(encoding="utf-8").replace("\n", "")
    starts = (k % len(text) for k in range(0, 7 * n, 7))
    again = text * (2 + length // len(text))
    return [again[start : start + length] for start in starts]


class Connection(asyncio.Protocol):
    """One connection of the client, which costs little beside the server; it has one request at a time."""

    _answer: asyncio.Future[int]
    _buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    @property
    def is_open(self) -> bool:
        return not self._transport.is_closing()

    def post(self, content: bytes) -> asyncio.Future[int]:
        """Send a request; the status of the answer, once it is there whole."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(content)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            self._buffer = b""
            if not self._answer.done():
                self._answer.set_result(int(head.split(None, 2)[1]))

    def connection_lost(self, reason: Exception | None) -> None:
        if hasattr(self, "_answer") and not self._answer.done():
            self._answer.set_exception(reason or ConnectionResetError("closed before the answer"))


class Answer(NamedTuple):
    """The status of a request, 0 where the connection broke, and when it was sent and answered: ms since it was due."""

    status: int
    sent: float
    answered: float


def requests_of(address: str, bodies: Iterable[bytes]) -> Iterator[bytes]:
    """A whole request for each body, as it goes over the wire."""
    url = urlsplit(address)
    head = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
    for body in bodies:
        yield f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def send(address: str, texts: list[str], rate: float) -> list[Answer]:
    """Send each text when it is due, on an idle connection or a new one, whatever became of those before."""
    url = urlsplit(address)
    requests = list(requests_of(address, (json.dumps({"text": x}, ensure_ascii=False).encode() for x in texts)))
    loop = asyncio.get_running_loop()
    idle: list[Connection] = []

    async def one(number: int, due: float) -> Answer:
        sent = time.perf_counter()
        while idle and not idle[-1].is_open:  # the server closes those that are idle for long
            idle.pop()
        try:
            connection = idle.pop() if idle else (await loop.create_connection(Connection, url.hostname, url.port))[1]
            status = await connection.post(requests[number])
            idle.append(connection)
        except OSError:
            status = 0
        return Answer(status, 1e3 * (sent - due), 1e3 * (time.perf_counter() - due))

    await asyncio.gather(*(one(k, time.perf_counter()) for k in range(min(20, len(texts)))))  # warm
    began = time.perf_counter() + 0.1
    tasks = []
    for number in range(len(texts)):
        due = began + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        tasks.append(loop.create_task(one(number, due)))
    return await asyncio.gather(*tasks)


def summary(found: list[Answer], rate: float) -> dict[str, Any]:
    n_of = Counter(answer.status for answer in found)
    result: dict[str, Any] = {"requests_per_second": rate, "n_requests": len(found)}
    for name, status in {"answered": 200, "refused": 429, "broken": 0}.items():
        result[f"n_{name}"] = n_of.pop(status, 0)
    result["n_other"] = n_of.total()
    result["client_late_ms_p99"] = float(np.percentile([answer.sent for answer in found], 99))
    for kind, status in (("", 200), ("refused_", 429)):
        taken = [answer.answered for answer in found if answer.status == status] or [float("nan")]
        result |= {f"{kind}ms_p{share}": float(np.percentile(taken, share)) for share in (50, 99)}
    return result


def throughput(address: str, texts: list[str], at_once: int, clients: int) -> float:
    """Characters per second over HTTP, with `at_once` texts in a request and so many clients."""

    async def client_of(part: list[str]) -> None:
        async with httpx2.AsyncClient(timeout=300, trust_env=False) as client:
            for k in range(0, len(part), at_once):
                (await client.post(address, json={"texts": part[k : k + at_once]})).raise_for_status()

    async def all_clients() -> None:
        await asyncio.gather(*(client_of(texts[k::clients]) for k in range(clients)))

    started = time.perf_counter()
    asyncio.run(all_clients())
    return sum(map(len, texts)) / (time.perf_counter() - started)


def predict(texts: list[str]) -> float:
    """Characters per second of `cige predict`, without the seconds that it takes for one text."""
    with tempfile.TemporaryDirectory() as folder:
        path, seconds = Path(folder) / "texts.txt", []
        for lines in (texts[:1], texts):
            path.write_text("\n".join(lines), encoding="utf-8")
            command = [sys.executable, "-m", "cige", "predict", str(path), "--format", "jsonl"]
            started = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            seconds.append(time.perf_counter() - started)
    return sum(map(len, texts)) / (seconds[1] - seconds[0])
