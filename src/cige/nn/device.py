"""The device for prediction, which is checked before anything is moved to it."""

from __future__ import annotations

import torch

from cige.errors import ModelError


def canonical_name(name: str) -> str:
    """PyTorch's name of a device; "gpu" is an alias of "cuda"."""
    return "cuda" + name[3:] if isinstance(name, str) and (name == "gpu" or name.startswith("gpu:")) else name


def prediction_device(name: str) -> torch.device:
    """The PyTorch device with a name such as "cpu", "cuda", "cuda:1" or "gpu", which is "cuda".

    Raises:
        ModelError: there is no such type of device, or this machine has no device with that number.
    """
    try:
        device = torch.device(canonical_name(name))
    except (RuntimeError, TypeError, ValueError) as reason:
        raise ModelError(f"device {name!r}: expected cpu, cuda or cuda:N with the number of a GPU") from reason
    if device.type not in ("cpu", "cuda", "mps"):
        raise ModelError(f"device {name!r}: expected cpu, cuda or cuda:N with the number of a GPU")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ModelError(f"device {name}: PyTorch finds no Apple GPU on this machine; use cpu")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ModelError(f"device {name}: PyTorch finds no GPU on this machine; use cpu")
        if device.index is not None and device.index >= torch.cuda.device_count():
            raise ModelError(f"device {name}: this machine has GPUs 0 to {torch.cuda.device_count() - 1}")
    return device
