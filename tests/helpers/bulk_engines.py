"""Engines for tests: a small cluster of Ray, and what the processes of any engine need.

The cluster takes half a minute of computation to start, so tests in a row share one: see `ray_cluster` in conftest.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import cige

SOURCE = str(Path(cige.__file__).parents[1])
_running = ExitStack()


@contextmanager
def environment() -> Iterator[None]:
    """What processes that an engine starts need in order to import what this one does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")]))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        # Half of what Java computes in a run this short goes into compiling its own code well.
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(filter(None, [os.environ.get("JAVA_TOOL_OPTIONS"), quick])))
        yield


def ray_cluster() -> Any:
    """Ray, connected to two nodes of one core each, until `end_ray_cluster`."""
    import ray

    if not ray.is_initialized():
        _running.enter_context(environment())
        _running.enter_context(_new_cluster())
    return ray


def end_ray_cluster() -> None:
    """End the cluster if there is one."""
    _running.close()


@contextmanager
def _new_cluster() -> Iterator[None]:
    import ray
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # an actor less, and no report of what tests do
    # At 15, as is usual, actors hardly run beside another test process; Ray spells the name like this.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    node = {"num_cpus": 1, "object_store_memory": 1 << 30, "include_log_monitor": False}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False, "no_monitor": True})
    cluster.add_node(**node)
    ray.init(address=cluster.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()
    cluster.shutdown()
