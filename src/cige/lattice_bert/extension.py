"""What Lattice-BERT adds to the core of cige (see `cige.extensions`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from cige.extensions import Extension, Kind, RecipeKind
from cige.lattice_bert.kinds import FINETUNE, PRETRAIN, PRETRAINED, TUNED

_RECIPES = Path(__file__).parent / "recipes"


def _on_use(module: str, name: str) -> Callable[..., Any]:
    """A function or class method that is imported when it is first called, because it may need PyTorch."""

    def call(*args: Any, **options: Any) -> Any:
        return attrgetter(name)(import_module(f"cige.lattice_bert.{module}"))(*args, **options)

    return call


def _pretraining_command(name: str, file: str | None, output: str) -> str:
    return f"cige lattice-bert pretrain run {file or f'{PRETRAIN}/{name}'} --data DATA --output {output}"


def _tuning_command(name: str, file: str | None, output: str) -> str:
    recipe = f" --recipe {file}" if file else ""
    return f"cige lattice-bert finetune {name}{recipe} --model MODEL --data DATA --output {output}"


EXTENSION = Extension(
    kinds={
        TUNED: Kind(
            "`cige predict --model` and `cige.load` read it if the task was to find entities; in Python TunedModel."
            "from_pretrained reads every task. `cige lattice-bert pretrain explain --tuned` shows what it attends to, "
            "and the fine-tuned encoder is in its folder encoder/",
            open_finder=_on_use("tasks.ner", "TunedNER.from_pretrained"),
            load_features=_on_use("tasks.tuned", "encoder_features"),
        ),
        PRETRAINED: Kind(
            "fine-tune it (`cige lattice-bert finetune TASK --model`), show its size (`cige lattice-bert pretrain "
            "describe --model`) or what it attends to (`cige lattice-bert pretrain explain --model`), or read it with "
            "PretrainedLatticeBert.from_pretrained",
            load_features=_on_use("encoder.pretrained", "LatticeBertFeatures.load"),
        ),
    },
    recipes={
        PRETRAIN: RecipeKind(
            _RECIPES / PRETRAIN,
            "pretrain/tiny",
            _on_use("pretraining.recipe", "resolve_pretrain_recipe"),
            _pretraining_command,
        ),
        FINETUNE: RecipeKind(
            _RECIPES / FINETUNE, "finetune/tnews", _on_use("tasks.config", "resolve_tuning_config"), _tuning_command
        ),
    },
    verbs={"lattice-bert": "pre-train a Lattice-BERT, and fine-tune it on the tasks of the paper"},
    aliases={"pretrain": ("lattice-bert", "pretrain"), "finetune": ("lattice-bert", "finetune")},
    chinese=Path(__file__).with_name("chinese.json"),
    commands="cige.lattice_bert.commands",
)
