"""Where training runs: a CPU, one GPU, or several processes that accelerate started."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import torch

from cige.engine.settings import Precision
from cige.errors import CigeError
from cige.nn.memory import keep_freed_memory

if TYPE_CHECKING:
    from accelerate import Accelerator

DEVICES = ("auto", "cpu", "cuda")


def prepare(device: str = "auto", *, precision: Precision = "fp32", one_process: bool = True) -> Accelerator:
    """The accelerator of a run; freed memory stays with this process from now on.

    Args:
        device: "auto" (a GPU where there is one), "cpu" or "cuda".
        one_process: refuse to be one of several processes.

    Raises:
        CigeError: an unknown device, no GPU, several processes, or accelerate is not installed.
    """
    if device not in DEVICES:
        raise CigeError(f"device {device!r}: expected {', '.join(DEVICES[:-1])} or {DEVICES[-1]}")
    if device == "cuda" and not torch.cuda.is_available():
        raise CigeError("device cuda: this machine's PyTorch sees no GPU; use auto or cpu")
    try:
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState
    except ImportError as reason:
        raise CigeError(f"training needs accelerate ({reason}); pip install 'cige[train]'") from reason
    AcceleratorState._reset_state()  # another run in this process may have had another precision or device
    made = Accelerator(mixed_precision="bf16" if precision == "bf16" else "no", cpu=device == "cpu")
    if one_process and made.num_processes > 1:
        raise CigeError(f"this training runs in one process, but {made.num_processes} were started; start one")
    keep_freed_memory()
    return made


def machine_facts(accelerator: Accelerator) -> dict[str, Any]:
    """What a run ran on."""
    return {
        "processor": platform.machine(),
        "n_threads": torch.get_num_threads(),
        "device": str(accelerator.device),
        "torch": torch.__version__,
    }
