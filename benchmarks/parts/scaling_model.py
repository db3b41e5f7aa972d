"""A simulator of pre-training on many GPUs: each step waits for its batches, its gradient and its turn, in that order.

Every process makes batches with some workers beforehand, computes its passes, exchanges the gradient (partly while the
last pass still computes), updates the weights, plans each window of the corpus before it is read, and copies its part
of a checkpoint, which it writes in the background. All processes are alike, so one of them is simulated.
"""

from dataclasses import dataclass, fields

AHEAD = 2  # batches that each worker makes beforehand, as PyTorch's DataLoader does


@dataclass(frozen=True)
class Rates:
    """What one process of a machine does, in seconds and bytes."""

    make: float  # an instance, on one core
    compute: float  # forward and backward pass, per instance
    update: float  # the optimiser's, per step
    plan: float = 0.0  # a window, per instance of it, which every process does for all instances
    start: float = 0.0  # per step, whatever else a step takes
    gradient: float = 0.0  # bytes that are exchanged per step
    state: float = 0.0  # bytes of a checkpoint
    network: float = float("inf")  # bytes per second of each process
    overlap: float = 0.0  # share of the exchange that passes hide, 0..1
    copy: float = float("inf")  # bytes per second at which a process copies its part of a checkpoint
    disk: float = float("inf")  # and writes it


@dataclass(frozen=True)
class Job:
    """A run; without workers a process makes its batches itself."""

    n_steps: int  # to simulate
    batch: int  # instances of a step, over all processes
    n_processes: int = 1  # with a GPU each
    n_workers: int = 0  # of each process
    window: int = 0  # instances; 0 for none
    save_every: int = 0  # steps; 0 for no checkpoints


@dataclass
class Waits:
    """Where the seconds of a run go; they sum to `total`."""

    compute: float = 0.0
    update: float = 0.0  # with what each step takes anyway
    batches: float = 0.0  # waiting for them, or making them
    exchange: float = 0.0  # waiting for the gradient
    plan: float = 0.0
    checkpoint: float = 0.0  # copying the state, and waiting until the checkpoint before is written

    @property
    def total(self) -> float:
        return sum(getattr(self, field.name) for field in fields(self))

    def until(self, what: str, now: float, then: float) -> float:
        """Wait from now until then; returns when that is over."""
        setattr(self, what, getattr(self, what) + max(0.0, then - now))
        return max(now, then)


def simulate(job: Job, rates: Rates) -> Waits:
    """Simulate a run.

    Raises:
        ValueError: there are fewer instances in a step than processes.
    """
    n = job.n_processes
    if job.batch < n:
        raise ValueError(f"{job.batch} instances for {n} processes; each needs one")
    n_own = -(-job.batch // n)
    sent = 2 * (n - 1) / n * rates.gradient / rates.network  # of a ring
    compute = n_own * rates.compute
    waits, now, disk_free, planned = Waits(), 0.0, 0.0, 0
    worker_free = [0.0] * job.n_workers
    ready: list[float] = []  # when the batch of each step is made
    for step in range(job.n_steps):
        if job.window and step * job.batch >= planned:
            planned += job.window
            now = waits.until("plan", now, now + job.window * rates.plan)
        while job.n_workers and len(ready) < min(job.n_steps, step + AHEAD * job.n_workers):
            worker = len(ready) % job.n_workers
            worker_free[worker] = max(worker_free[worker], now) + n_own * rates.make
            ready.append(worker_free[worker])
        now = waits.until("batches", now, ready[step] if ready else now + n_own * rates.make)
        now = waits.until("compute", now, now + compute)
        now = waits.until("exchange", now, now + max(sent * (1 - rates.overlap), sent - compute))
        now = waits.until("update", now, now + rates.update + rates.start)
        if job.save_every and (step + 1) % job.save_every == 0:
            now = waits.until("checkpoint", now, disk_free)
            now = waits.until("checkpoint", now, now + rates.state / n / rates.copy)
            disk_free = now + rates.state / n / rates.disk
    waits.until("checkpoint", now, disk_free)
    return waits
