"""Building a network whose weights come from a file: no memory is taken, and no random numbers are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_DRAWN = (torch.Tensor.normal_, torch.Tensor.uniform_)


@contextmanager
def uninitialised() -> Iterator[None]:
    """All tensors that are made in this context, such as the parameters of modules, are on the device "meta" and hold
    nothing.

    Give modules their weights with `load_state_dict(..., assign=True)`; what is not in their state (a buffer that is
    not persistent, a plain attribute) must be made elsewhere. Functions of `torch.nn.init` do nothing here: on "meta"
    they would have no effect, but the first random one imports PyTorch's compiler, which takes two seconds.
    """
    with torch.device("meta"), _NoInitialValues():
        yield


class _NoInitialValues(TorchFunctionMode):
    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in _DRAWN or getattr(function, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs)
