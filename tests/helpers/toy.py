"""A small objective: which of 40 words a sum of three was made of, with dropout and a table of sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cige.engine.devices import prepare
from cige.engine.history import Record, RunState
from cige.engine.plan import BatchPlan
from cige.engine.run_config import RunConfig
from cige.engine.settings import BatchConfig, CheckpointConfig, OptimizerConfig, ScheduleConfig
from cige.engine.trainer import Trainer
from cige.nn.embeddings import SplitEmbedding

N_WORDS, N_EXAMPLES, SEED = 40, 30, 5


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(SEED)
        self.table = SplitEmbedding(n_rows=N_WORDS + 10, n_tuned=N_WORDS, width=6)
        self.table.load_vectors(torch.randn(N_WORDS + 10, 6))
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(6, 2)

    def forward(self, words: Tensor) -> Tensor:
        """int64[B, 3] -> float[B, 2]."""
        return self.output(self.dropout(self.table(words).sum(1)))


class Objective:
    keeps_best = True

    def __init__(self, *, n_epochs: int | None = 4, n_steps: int = 0, scores: Sequence[float] = (), **batches: Any):
        rng = np.random.default_rng(SEED)
        self.words = torch.from_numpy(rng.integers(4, N_WORDS, (N_EXAMPLES, 3)))
        self.labels = (self.words.sum(1) % 2).long()
        self.plan = BatchPlan(rng.integers(1, 9, N_EXAMPLES), BatchConfig(**({"batch_size": 6} | batches)), seed=SEED)
        self.n_steps = n_steps or self.plan.n_steps(n_epochs or 0)
        self.scores = iter(scores) if scores else None
        self.poison: float | None = None  # what the loss is multiplied by

    def read(self, epoch: int, numbers: Sequence[int]) -> tuple[Tensor, Tensor]:
        return self.words[numbers], self.labels[numbers]

    def weights(self, batch: tuple[Tensor, Tensor]) -> Sequence[float]:
        return (len(batch[0]),)

    def losses(self, network: nn.Module, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        words, labels = batch
        loss = nn.functional.cross_entropy(network(words), labels, reduction="sum")
        if self.poison is not None:
            loss = loss * self.poison
        return loss[None], torch.stack([loss.detach().double(), torch.tensor(len(words)).double()])

    def summary(self, totals: Sequence[float]) -> dict[str, float]:
        return {"loss": totals[0] / totals[1]}

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        if self.scores is not None:
            return {"made_up": next(self.scores)}
        network.eval()
        with torch.no_grad():
            found = float((network(self.words).argmax(1) == self.labels).double().mean())
        network.train()
        return {"accuracy": found, "mean": float(network.table.tuned.detach().mean())}

    def describe(self, record: Record, state: RunState) -> str:
        return f"step {record.step}"


def trainer(folder: Path, *, n_steps: int, n_epochs: int | None = 4, **settings: Any) -> Trainer:
    parts = {
        "optimizer": OptimizerConfig(learning_rate=0.05),
        "schedule": ScheduleConfig(warmup="2 steps"),
        "checkpoints": CheckpointConfig(
            every=settings.pop("every", None),
            keep=settings.pop("keep", 1),
            in_background=settings.pop("in_background", False),
        ),
    }
    config = RunConfig(name="toy", n_steps=n_steps, n_epochs=n_epochs, **(parts | settings))
    options: dict[str, Any] = {"folder": folder, "origin": "toy", "seed": SEED, "show_progress": False}
    return Trainer(Network(), config, accelerator=prepare("cpu"), **options)


def weights(network: nn.Module) -> list[bytes]:
    return [p.detach().numpy().tobytes() for p in network.parameters()]
