"""Waits: how many connections a worker may have, and how long each of them may wait for its client."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

WAITS = "cige_waits"  # key of the lifespan state of the app, for `door`
SPARE_FILES = 48  # for connections that are accepted before others are closed, and for files that are read and written


@dataclass(frozen=True)
class Waits:
    """How many connections there may be, and how long they wait.

    Attributes:
        connections: maximum number of connections.
        head_s: seconds for the URL and the headers, from the first byte or from the beginning of the connection.
        read_s: seconds for the body.
        idle_s: seconds between requests; clients keep idle connections for less, so that none is closed while they use
            it again.
        write_s: seconds for which a client may read nothing of its response.
    """

    connections: int = 1_024
    head_s: float = 10.0
    read_s: float = 30.0
    idle_s: float = 75.0
    write_s: float = 30.0


def possible_connections(most: int) -> int:
    """`most`, or as many connections as this process can open files for."""
    try:
        import resource
    except ImportError:  # Windows
        return most
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    listed = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")
    n_open = len(os.listdir(listed)) if listed.is_dir() else 0
    return max(8, min(most, soft - n_open - SPARE_FILES))
