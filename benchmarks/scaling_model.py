"""A simulator of pre-training on many GPUs: each step waits for its batches, its gradient and its turn, in that order.

Every process makes batches with some workers beforehand, computes its passes, exchanges the gradient (partly while the
last pass still computes), updates the weights, plans each window of the corpus before it is read, and copies its part
of a checkpoint, which it writes in the background. All processes are alike, so one of them is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

AHEAD = 2  # batches that each worker makes beforehand, as PyTorch's DataLoader does


@dataclass(frozen=True)
class Rates:
    """What one process of a machine does, in seconds and bytes.

    Attributes:
        make: to make an instance, on one core.
        compute: forward and backward pass, per instance.
        update: the optimiser's, per step.
        plan: to plan a window, per instance of it, which every process does for all instances.
        start: per step, whatever else a step takes.
        gradient: bytes that are exchanged per step; state: bytes of a checkpoint.
        network: bytes per second of each process; overlap: share of the exchange that passes hide, 0..1.
        copy, disk: bytes per second at which a process copies its part of a checkpoint and writes it.
    """

    make: float
    compute: float
    update: float
    plan: float = 0.0
    start: float = 0.0
    gradient: float = 0.0
    state: float = 0.0
    network: float = float("inf")
    overlap: float = 0.0
    copy: float = float("inf")
    disk: float = float("inf")


@dataclass(frozen=True)
class Job:
    """A run.

    Attributes:
        n_steps: to simulate; batch: instances of a step, over all processes.
        n_processes, n_workers: processes with a GPU each, and workers of each; without workers a process makes its
            batches itself.
        window: instances of a window; save_every: steps between checkpoints; 0 for neither.
    """

    n_steps: int
    batch: int
    n_processes: int = 1
    n_workers: int = 0
    window: int = 0
    save_every: int = 0


@dataclass(frozen=True)
class Waits:
    """Where the seconds of a run go; they sum to `total`.

    Attributes:
        compute, update: passes and updates, with what each step takes anyway.
        batches: waiting for batches, or making them; exchange: waiting for the gradient; plan: planning windows;
            checkpoint: copying the state, and waiting until the checkpoint before is written.
    """

    compute: float
    update: float
    batches: float
    exchange: float
    plan: float
    checkpoint: float

    @property
    def total(self) -> float:
        return sum(getattr(self, field.name) for field in fields(self))

    @property
    def first(self) -> str:
        """What takes the most seconds besides passes: the resource that saturates first."""
        return max((f.name for f in fields(self) if f.name != "compute"), key=lambda name: getattr(self, name))


def simulate(job: Job, rates: Rates) -> Waits:
    """Simulate a run.

    Raises:
        ValueError: there are fewer instances in a step than processes.
    """
    if job.batch < job.n_processes:
        raise ValueError(f"{job.batch} instances for {job.n_processes} processes; each needs one")
    n_own = -(-job.batch // job.n_processes)
    n = job.n_processes
    sent = 2 * (n - 1) / n * rates.gradient / rates.network  # of a ring
    copied, written = rates.state / n / rates.copy, rates.state / n / rates.disk
    waits = {field.name: 0.0 for field in fields(Waits)}
    now = disk_free = planned = 0.0
    worker_free = [0.0] * job.n_workers
    ready: list[float] = []  # when the batch of each step is made

    def spend(what: str, until: float) -> None:
        nonlocal now
        waits[what] += max(0.0, until - now)
        now = max(now, until)

    for step in range(job.n_steps):
        if job.window and step * job.batch >= planned:
            planned += job.window
            spend("plan", now + job.window * rates.plan)
        if job.n_workers:
            while len(ready) < min(job.n_steps, step + AHEAD * job.n_workers):
                worker = len(ready) % job.n_workers
                worker_free[worker] = max(worker_free[worker], now) + n_own * rates.make
                ready.append(worker_free[worker])
            spend("batches", ready[step])
        else:
            spend("batches", now + n_own * rates.make)
        compute = n_own * rates.compute
        spend("compute", now + compute)
        spend("exchange", now + max(sent * (1 - rates.overlap), sent - compute))
        spend("update", now + rates.update + rates.start)
        if job.save_every and (step + 1) % job.save_every == 0:
            spend("checkpoint", disk_free)
            spend("checkpoint", now + copied)
            disk_free = now + written
    spend("checkpoint", disk_free)
    return Waits(**waits)
