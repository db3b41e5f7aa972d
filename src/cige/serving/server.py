"""Run a server: one process, or several processes that share the port, the model files and the user words."""

from __future__ import annotations

import fcntl
import inspect
import logging
import multiprocessing
import os
import resource
import shutil
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Any

from cige.errors import CigeError
from cige.serving.hosts import is_loopback, names_of
from cige.serving.settings import TOKEN_VARIABLE, Settings, token_of_environment

if TYPE_CHECKING:
    from fastapi import FastAPI
    from uvicorn import Config

    from cige.lexicon.report import LoadReport

log = logging.getLogger("cige.serve")
KEEP_ALIVE_S = 75  # longer than clients keep idle connections, so that no connection is closed when it is reused
ACCEPTED_AT_ONCE = 64  # uvloop accepts one connection per socket and round, so the socket is duplicated this often
BACKLOG = 2_048  # connections that wait to be accepted; uvicorn's default
MOST_FILES = 4_096  # that a process may open; each connection is one
WORKER_APP = "cige.serving.server:worker_app"
_SHARED = "cige-serve-"  # the beginning of the names of folders that workers share
_IN_USE = "in-use"  # a file in them that the processes of their server keep locked


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    on_report: Callable[[LoadReport], None],
    n_workers: int = 1,
    no_token: bool = False,
) -> None:
    """Serve requests until the process is stopped; accepted requests are answered before it ends.

    Args:
        host, port: the address to listen on; port 0 uses any free port, with one worker.
        on_report: called with the report of each word list, before requests are accepted.
        n_workers: number of processes. If there are several and no lexicon file, words that are added over HTTP are
            stored in a temporary file until the server stops.
        no_token: whether a server that other machines reach may do without a token.

    Raises:
        CigeError: other machines would reach the server, and it has no token.
    """
    if not (token_of_environment() or no_token or is_loopback(host)):
        raise CigeError(
            f"given --host {host} and no token; everybody who reaches this address could use the server and change its "
            f"words: set the environment variable {TOKEN_VARIABLE}, or say --no-token if that is meant"
        )
    import uvicorn

    from cige.serving.app import app_of_worker
    from cige.serving.door import Door

    with ExitStack() as until_end:
        if n_workers > 1:
            folder = until_end.enter_context(_shared_folder())
            (folder / "metrics").mkdir()
            # Before a worker imports prometheus_client.
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder / "metrics")
            settings = replace(
                settings,
                metrics_folder=str(folder / "metrics"),
                lexicon_file=settings.lexicon_file or str(folder / "words.json"),
            )
        settings = replace(settings, hosts=names_of(host, settings.hosts))
        n_files = _allow_files()
        settings.to_environment()
        app = app_of_worker(on_report)  # reports problems of model or words before workers start
        listening = _listen(host, port)
        port = listening.getsockname()[1]
        configured = partial(
            uvicorn.Config,
            http=Door,
            access_log=False,  # uvicorn's log would contain query strings
            log_level="warning",
            ws="none",
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=max(1, round(settings.limits.drain_s)),
            server_header=False,
        )
        name = f"[{host}]" if ":" in host else host
        print(f"cige: serving at http://{name}:{port} (Ctrl-C stops)", file=sys.stderr, flush=True)
        n_doors = max(1, min(ACCEPTED_AT_ONCE, n_files // 32))
        doors = [listening, *(listening.dup() for _ in range(n_doors - 1))]
        for door in doors:
            until_end.callback(door.close)
        if n_workers == 1:
            _run_here(configured(app), doors)
        else:
            del app
            _run_workers(configured(WORKER_APP, factory=True, workers=n_workers), doors)


def _run_here(config: Config, doors: list[socket.socket]) -> None:
    """Serve in this process; Ctrl-C ends it with a KeyboardInterrupt, as a second one sometimes does not by itself."""
    import uvicorn

    class Server(uvicorn.Server):
        is_interrupted = False

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            self.is_interrupted |= sig == signal.SIGINT
            super().handle_exit(sig, frame)

    server = Server(config)
    server.run(doors)
    if server.is_interrupted:
        raise KeyboardInterrupt


def _run_workers(config: Config, doors: list[socket.socket]) -> None:
    """Serve in several processes, with `worker_app`; Ctrl-C ends them with a KeyboardInterrupt."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # as nohup has it

    class Workers(Multiprocess):
        is_interrupted = False

        def handle_int(self) -> None:
            self.is_interrupted = True
            super().handle_int()

        def handle_hup(self) -> None:  # the terminal was closed; uvicorn would start new processes
            if not outlives_terminal:
                self.handle_term()

    older = "target" in inspect.signature(Multiprocess).parameters
    workers = Workers(config, sockets=doors, **({"target": uvicorn.Server(config).run} if older else {}))
    workers.run()
    if workers.is_interrupted:
        raise KeyboardInterrupt


def worker_app() -> FastAPI:
    """The app of one of several worker processes, which ends with the process that started it."""
    from cige.serving.app import app_of_worker

    if (shared := Settings.from_environment().metrics_folder) is not None:
        _hold(Path(shared).parent)
        _lock(Path(shared).with_name(_IN_USE), fcntl.LOCK_SH)
    if (parent := multiprocessing.parent_process()) is not None:
        Thread(target=_stop_after, args=(parent,), daemon=True).start()
    try:
        return app_of_worker()
    except CigeError as error:  # of a worker that takes the place of another; the first ones had nothing to say
        log.error("a worker cannot start: %s", error)
        raise SystemExit(1) from None


def _stop_after(parent: Any) -> None:
    """Stop this process when `parent` has ended, which cannot stop its workers if it was killed; they keep the port."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _shared_folder() -> Iterator[Path]:
    """A folder that the workers share, which is removed at the end, or by the next server if this one is killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_SHARED}*"):
        with suppress(OSError):  # it is in use, of an older version, or somebody else's
            found = left.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                _lock(left / _IN_USE, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_SHARED) as name:
        folder = Path(name)
        _hold(folder)
        new = folder / "new"
        new.touch()
        _lock(new, fcntl.LOCK_SH)
        new.rename(folder / _IN_USE)  # so that the file is locked as soon as others find it
        yield folder


def _hold(folder: Path) -> None:
    """Keep systemd-tmpfiles from removing old files, such as words that have not been changed for 10 days."""
    _lock(folder, fcntl.LOCK_SH)


def _lock(file: Path, how: int) -> None:
    """Lock a file or folder for as long as this process lives; the operating system then takes the lock away."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        os.close(descriptor)
        raise


def _allow_files() -> int:
    """Let this process and its workers open as many files as they may, up to MOST_FILES; returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens on the address; raises a CigeError if it is in use, or is not of this machine.

    Clients that connect before the workers are ready wait, and are not refused.
    """
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError as reason:
        bound.close()
        raise CigeError(
            f"{host}:{port}: cannot listen there ({reason.strerror}); give another --port or --host"
        ) from None
    bound.set_inheritable(True)
    return bound
