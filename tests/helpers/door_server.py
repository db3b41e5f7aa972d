"""An app of any kind behind the door of a server, in this process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from cige.serving.door import Door

SOON = 60


@contextmanager
def running(app: Callable[..., Any], **config: Any) -> Iterator[tuple[str, int]]:
    """An app behind the door, in a thread; its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, http=Door, **config))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield listening.getsockname()
        finally:  # else a test that fails would keep the process from ending
            server.should_exit = True
            thread.join(SOON)
