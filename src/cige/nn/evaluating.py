"""A context in which a network is in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Without dropout inside the context; the network is left in its previous mode."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)
