"""Run a server: one process, or several that share the port, the model's files and the words."""

from __future__ import annotations

import inspect
import logging
import os
import socket
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from cige.errors import CigeError
from cige.serving.settings import Settings

log = logging.getLogger("cige.serve")
KEEP_ALIVE_S = 75  # longer than clients keep idle connections, so that none is closed just as it is used again
ACCEPTED_AT_ONCE = 64  # a round of uvloop takes one connection from each socket: of copies of one, as many as these
WORKER_APP = "cige.serving.app:app_of_worker"


def serve(settings: Settings, *, host: str, port: int, n_workers: int = 1, access_log: bool = False) -> None:
    """Answer requests until the process is told to stop; then those that were taken are answered first.

    Args:
        host, port: where to listen; port 0 takes any free one, with one worker.
        n_workers: processes. Words that are added over HTTP must be in a file then; without one they are kept in a
            temporary file until the server stops.
        access_log: log every request, without its text.
    """
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from cige.serving.app import app_of_worker
    from cige.serving.door import Door

    with ExitStack() as until_end:
        if n_workers > 1:
            folder = Path(until_end.enter_context(tempfile.TemporaryDirectory(prefix="cige-serve-")))
            (folder / "metrics").mkdir()
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder / "metrics")  # before a worker imports the client
            settings = replace(
                settings,
                metrics_folder=str(folder / "metrics"),
                lexicon_file=settings.lexicon_file or str(folder / "words.json"),
            )
        settings.to_environment()
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        log.setLevel(logging.INFO if access_log or settings.log_text else logging.WARNING)
        app = app_of_worker()  # what is wrong with the model or the words is told before any worker starts
        listening = _listen(host, port)
        port = listening.getsockname()[1]
        options: dict[str, Any] = {
            "http": Door,
            "access_log": False,  # the log of this package has no texts; theirs has query strings
            "log_level": "warning",
            "timeout_keep_alive": KEEP_ALIVE_S,
            "timeout_graceful_shutdown": max(1, round(settings.limits.drain_s)),
            "server_header": False,
        }
        name = f"[{host}]" if ":" in host else host
        print(f"cige: serving at http://{name}:{port} (Ctrl-C stops)", file=sys.stderr, flush=True)
        doors = [listening, *(listening.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]
        for door in doors:
            until_end.callback(door.close)
        if n_workers == 1:
            uvicorn.Server(uvicorn.Config(app, **options)).run(doors)
        else:
            del app
            config = uvicorn.Config(WORKER_APP, factory=True, workers=n_workers, **options)
            older = "target" in inspect.signature(Multiprocess).parameters
            Multiprocess(config, sockets=doors, **({"target": uvicorn.Server(config).run} if older else {})).run()


def _listen(host: str, port: int) -> socket.socket:
    """A socket that is bound to the address.

    Raises:
        CigeError: it is taken, or no address of this machine.
    """
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as reason:
        bound.close()
        raise CigeError(
            f"{host}:{port}: cannot listen there ({reason.strerror}); give another --port or --host"
        ) from None
    bound.set_inheritable(True)
    return bound
