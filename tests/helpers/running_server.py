"""A server in processes of its own, for tests that a client in this process cannot make."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

SOON = 120.0  # seconds; a busy machine may need many


@contextmanager
def server(*options: str, token: str | None = None) -> Iterator[tuple[httpx2.Client, subprocess.Popen]]:
    """`cige serve` with these options on a free port: a client of it, and its process. It is stopped at the end."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    environment = os.environ | ({"CIGE_SERVE_TOKEN": token} if token else {})
    command = [sys.executable, "-m", "cige", "serve", "--port", str(port), *options]
    process = subprocess.Popen(command, env=environment)
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=SOON, trust_env=False) as client:
            until = time.monotonic() + SOON
            while not is_ready(client):
                assert process.poll() is None, "the server ended before it was ready"
                assert time.monotonic() < until, "the server is not ready"
                time.sleep(0.05)
            yield client, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(SOON)


def is_ready(client: httpx2.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx2.TransportError:
        return False
