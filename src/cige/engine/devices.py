"""Where training runs: a CPU, one GPU, or several processes that accelerate started."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import torch

from cige.engine.settings import Precision
from cige.errors import CigeError
from cige.nn.device import canonical_name
from cige.nn.memory import keep_freed_memory

if TYPE_CHECKING:
    from accelerate import Accelerator

DEVICES = ("auto", "cpu", "cuda")


def prepare(device: str = "auto", *, precision: Precision = "fp32", one_process: bool = True) -> Accelerator:
    """Create the accelerator of a run; from then on, the process keeps freed memory.

    Args:
        device: "auto" (a GPU if there is one), "cpu" or "cuda".
        one_process: raise an error if this is one of several processes.

    Raises:
        CigeError: an unknown device, no GPU, several processes, or accelerate is not installed.
    """
    if canonical_name(device) not in DEVICES:
        raise CigeError(f"device {device!r}: expected {', '.join(DEVICES[:-1])} or {DEVICES[-1]}")
    if canonical_name(device) == "cuda" and not torch.cuda.is_available():
        raise CigeError(f"device {device}: this machine's PyTorch sees no GPU; use auto or cpu")
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
    """A description of the machine of a run."""
    return {
        "processor": platform.machine(),
        "n_threads": torch.get_num_threads(),
        "device": str(accelerator.device),
        "torch": torch.__version__,
    }
