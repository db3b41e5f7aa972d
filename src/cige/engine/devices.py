"""The devices of training: a CPU, one GPU, or several processes started by accelerate."""

from __future__ import annotations

import atexit
import os
import platform
from typing import TYPE_CHECKING

import torch

from cige.engine.settings import Precision
from cige.errors import CigeError
from cige.nn import native
from cige.nn.device import canonical_name
from cige.nn.memory import keep_freed_memory

if TYPE_CHECKING:
    from accelerate import Accelerator

DEVICES = ("auto", "cpu", "cuda")


def prepare(device: str = "auto", *, precision: Precision = "fp32", may_skip_weights: bool = True) -> Accelerator:
    """Create the accelerator of a run; from then on, the process keeps freed memory.

    Args:
        device: "auto" (a GPU if there is one), "cpu" or "cuda"; else, or without a GPU, this raises a CigeError.
        may_skip_weights: whether some weights may not contribute to the loss of a batch, so that several processes must
            detect them in each step.
    """
    if canonical_name(device) not in DEVICES:
        raise CigeError(f"device {device!r}: expected {', '.join(DEVICES[:-1])} or {DEVICES[-1]}")
    if canonical_name(device) == "cuda" and not torch.cuda.is_available():
        raise CigeError(f"device {device}: PyTorch finds no GPU on this machine; use auto or cpu")
    try:
        from accelerate import Accelerator, DistributedDataParallelKwargs
        from accelerate.state import AcceleratorState
    except ImportError as reason:
        raise CigeError(f"training needs accelerate ({reason}); pip install 'cige[train]'") from reason
    if is_restart():
        _rejoin(on_cpu=device == "cpu" or not torch.cuda.is_available())
    AcceleratorState._reset_state()  # another run in this process may have had another precision or device
    made = Accelerator(
        mixed_precision="bf16" if precision == "bf16" else "no",
        cpu=device == "cpu",
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=may_skip_weights)],
    )
    if made.num_processes > 1:
        atexit.register(_leave)  # when the interpreter does this at its end, gloo may wait forever for others
    keep_freed_memory()
    return made


def is_restart() -> bool:
    """Whether torchrun started this process again after a failure (--max-restarts)."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def _rejoin(*, on_cpu: bool) -> None:
    """Join the other processes after a restart.

    torchrun keeps one store over all restarts, in which gloo would find the addresses of processes that have ended
    ("Connection refused"). Names in the store therefore begin with the number of the restart.
    """
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    if not distributed.is_initialized():
        store, rank, n_processes = next(iter(rendezvous("env://")))
        store = distributed.PrefixStore(f"restart-{os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
        backend = "gloo" if on_cpu else "cuda:nccl,cpu:gloo"
        distributed.init_process_group(backend, store=store, rank=rank, world_size=n_processes)


def _leave() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def machine_facts(accelerator: Accelerator) -> dict[str, object]:
    """A description of the machine of a run, and of the instruction sets of PyTorch and of our kernels, which determine
    the order of sums and with it the last digits of weights."""
    return {
        "processor": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "kernels": native.level() or "none",
        "n_threads": torch.get_num_threads(),
        "device": str(accelerator.device),
        "n_processes": accelerator.num_processes,
        "torch": torch.__version__,
    }
