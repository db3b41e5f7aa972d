"""Metrics for Prometheus at /metrics, of one worker or summed over several."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

SECONDS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
OTHER = "other"
_LIVE_FILE = re.compile(r"gauge_live[a-z]+_([0-9]+)\.db")


class Metrics:
    """The counters of an app; those of several workers are summed through files in a folder, None for a single worker.

    PROMETHEUS_MULTIPROC_DIR must be set to the folder before prometheus_client is imported.
    """

    content_type = prometheus_client.CONTENT_TYPE_LATEST

    def __init__(self, folder: str | None = None):
        self._folder = None if folder is None else Path(folder)
        self._registry = of = CollectorRegistry()
        self._requests = Counter("cige_requests", "Requests answered", ("path", "status"), registry=of)
        self._seconds = Histogram(
            "cige_request_seconds", "Seconds to an answer", ("path",), buckets=SECONDS, registry=of
        )
        self._chars = Counter("cige_characters", "Characters of texts that were answered", ("model",), registry=of)
        self._entities = Counter("cige_entities", "Entities found", ("model", "label"), registry=of)
        self._windows = Histogram("cige_batch_windows", "Windows read at once", buckets=SIZES, registry=of)
        self._nodes = Counter("cige_batch_nodes", "Nodes of the lattices that were read", registry=of)
        self._batch_seconds = Histogram("cige_batch_seconds", "Seconds of a batch", buckets=SECONDS, registry=of)
        self._waiting = Gauge("cige_waiting_requests", "Requests that wait", multiprocess_mode="livesum", registry=of)
        self._waiting_chars = Gauge(
            "cige_waiting_characters", "Their characters", multiprocess_mode="livesum", registry=of
        )
        self._version = Gauge("cige_lexicon_version", "Version of the lexicon", multiprocess_mode="max", registry=of)

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request; status 0 means that the client disconnected before the response."""
        self._requests.labels(path, str(status or "gone")).inc()
        self._seconds.labels(path).observe(seconds)

    def answer(self, model: str, n_chars: int, labels: Mapping[str, int], known: Collection[str]) -> None:
        """Count the characters that a model processed, and the labels of the entities found.

        Args:
            labels: label -> number of entities.
            known: the labels of the model. All others are those of clients' words, which count as `other`, since each
                further label would be kept for as long as the server runs.
        """
        self._chars.labels(model).inc(n_chars)
        for label, number in labels.items():
            self._entities.labels(model, label if label in known else OTHER).inc(number)

    def batch(self, n_windows: int, n_nodes: int, seconds: float) -> None:
        self._windows.observe(n_windows)
        self._nodes.inc(n_nodes)
        self._batch_seconds.observe(seconds)

    def queue(self, n_jobs: int, n_chars: int) -> None:
        self._waiting.set(n_jobs)
        self._waiting_chars.set(n_chars)

    def lexicon(self, version: int) -> None:
        self._version.set(version)

    def page(self) -> bytes:
        """All metrics in Prometheus's text format."""
        if self._folder is None:
            return prometheus_client.generate_latest(self._registry)
        self._forget_dead_workers(self._folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=str(self._folder))
        return prometheus_client.generate_latest(registry)

    def _forget_dead_workers(self, folder: Path) -> None:
        """Remove the gauges of workers that were killed."""
        for file in folder.iterdir():
            match = _LIVE_FILE.fullmatch(file.name)
            if match and not _is_alive(int(match[1])):
                file.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
