"""The HTTP server: seconds to an answer at a steady rate and at overload, and throughput beside `cige predict`.

Requests are sent when they are due, whether or not those before them were answered, and are timed from when they were
due. The server and this program run on one machine and share its cores. Texts are cut from a file.

  OMP_NUM_THREADS=1 cige bench serve --json serve.json
  OMP_NUM_THREADS=1 cige bench serve --workers 2 --rate 50 --seconds 20
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import numpy as np
from measure import environment, write

NEWS = Path(__file__).resolve().parents[1] / "examples" / "news.txt"


@contextmanager
def server(workers: int):
    """A server on a free port, and how many seconds it took to be ready."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    started = time.perf_counter()
    command = [sys.executable, "-m", "cige", "serve", "--port", str(port), "--workers", str(workers)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                if httpx2.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200:
                    break
            except httpx2.TransportError:
                if process.poll() is not None:
                    sys.exit("the server ended before it was ready; `cige serve` says why")
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1/entities", time.perf_counter() - started
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def texts_of(path: Path, n: int, length: int) -> list[str]:
    """`n` texts of `length` characters; each begins elsewhere, so that no two neighbours are alike."""
    text = path.read_text(encoding="utf-8").replace("\n", "")
    return [(text * 2)[k % len(text) :][:length] for k in range(0, 7 * n, 7)]


class Connections:
    """A client that costs little beside the server: idle connections are used again, others are opened."""

    def __init__(self, address: str):
        self._url = urlsplit(address)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, body: bytes) -> int:
        """The status of an answer, which is read whole."""
        url = self._url
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(url.hostname, url.port)
        head = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(answer.partition(b"content-length:")[2].partition(b"\r\n")[0]))
        self._idle.append((reader, writer))
        return int(answer.split(None, 2)[1])


async def send(address: str, texts: list[str], rate: float) -> list[tuple[int, float]]:
    """(status, milliseconds from when it was due) of each request."""
    client = Connections(address)
    bodies = [json.dumps({"text": text}).encode() for text in texts]
    await asyncio.gather(*map(client.post, bodies[:20]))
    began = time.perf_counter() + 0.1

    async def one(number: int) -> tuple[int, float]:
        due = began + number / rate
        await asyncio.sleep(max(0, due - time.perf_counter()))
        status = await client.post(bodies[number])
        return status, 1e3 * (time.perf_counter() - due)

    return await asyncio.gather(*map(one, range(len(texts))))


def summary(found: list[tuple[int, float]], rate: float) -> dict[str, Any]:
    answered = np.array([ms for status, ms in found if status == 200] or [np.nan])
    statuses = [status for status, _ in found]
    return {
        "requests_per_second": rate,
        "n_requests": len(found),
        "n_answered": statuses.count(200),
        "n_refused": statuses.count(429),
        "n_other": sum(status not in (200, 429) for status in statuses),
        "ms_p50": float(np.percentile(answered, 50)),
        "ms_p99": float(np.percentile(answered, 99)),
    }


def throughput(address: str, texts: list[str], at_once: int, clients: int) -> float:
    """Characters per second over HTTP, with `at_once` texts in a request and so many clients."""

    async def client_of(part: list[str]) -> None:
        async with httpx2.AsyncClient(timeout=300, trust_env=False) as client:
            for k in range(0, len(part), at_once):
                (await client.post(address, json={"texts": part[k : k + at_once]})).raise_for_status()

    async def main() -> None:
        await asyncio.gather(*(client_of(texts[k::clients]) for k in range(clients)))

    started = time.perf_counter()
    asyncio.run(main())
    return sum(map(len, texts)) / (time.perf_counter() - started)


def predict(texts: list[str]) -> float:
    """Characters per second of `cige predict`, without the seconds that it takes for one text."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for lines in (texts[:1], texts):
            path = Path(folder) / "texts.txt"
            path.write_text("\n".join(lines), encoding="utf-8")
            command = [sys.executable, "-m", "cige", "predict", str(path), "--format", "jsonl"]
            started = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            seconds.append(time.perf_counter() - started)
    return sum(map(len, texts)) / (seconds[1] - seconds[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1, help="(default: 1)")
    parser.add_argument("--rate", type=float, default=50, help="requests per second (default: 50)")
    parser.add_argument("--overload", type=float, default=600, help="requests per second at overload (default: 600)")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement (default: 10)")
    parser.add_argument("--length", type=int, default=50, help="characters of a text (default: 50)")
    parser.add_argument("--texts", type=int, default=4000, help="texts whose throughput is measured (default: 4000)")
    parser.add_argument("--file", type=Path, default=NEWS, help="where texts are cut from")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    args = parser.parse_args()
    many = texts_of(args.file, args.texts, args.length)
    results: dict[str, Any] = {
        "environment": environment(threads=1, n_rounds=1),
        "workers": args.workers,
        "load": os.getloadavg()[0],
    }
    with server(args.workers) as (address, seconds):
        results["seconds_to_ready"] = seconds
        for name, rate in (("steady", args.rate), ("overload", args.overload)):
            texts = texts_of(args.file, int(rate * args.seconds), args.length)
            results[name] = summary(asyncio.run(send(address, texts, rate)), rate)
            print(name, results[name], flush=True)
        results["http_chars_per_second"] = throughput(address, many, 64, 2 * args.workers)
    results["predict_chars_per_second"] = predict(many)
    results["share"] = results["http_chars_per_second"] / results["predict_chars_per_second"]
    for name in ("seconds_to_ready", "http_chars_per_second", "predict_chars_per_second", "share"):
        print(f"{name} {results[name]:.4g}")
    write(results, args.json)


if __name__ == "__main__":
    main()
