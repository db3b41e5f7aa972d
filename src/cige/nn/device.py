"""The device that a model predicts on, checked before anything is moved there."""

from __future__ import annotations

import torch

from cige.errors import ModelError


def prediction_device(name: str) -> torch.device:
    """The PyTorch device of a name such as "cpu", "cuda" or "cuda:1".

    Raises:
        ModelError: there is no such kind of device, or this machine has none of that number.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError, ValueError) as reason:
        raise ModelError(f"device {name!r}: expected cpu, cuda or cuda:N with the number of a GPU") from reason
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ModelError(f"device {name}: this machine's PyTorch sees no GPU; use cpu")
        if device.index is not None and device.index >= torch.cuda.device_count():
            raise ModelError(f"device {name}: this machine has GPUs 0 to {torch.cuda.device_count() - 1}")
    return device
