"""What Lattice-BERT adds to the core of cige (see `cige.extensions`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cige.extensions import Extension, Kind, RecipeKind
from cige.lattice_bert.kinds import FINETUNE, PRETRAIN, PRETRAINED, TUNED

_RECIPES = Path(__file__).parent / "recipes"
_ABOUT = "pre-train a Lattice-BERT, and fine-tune it on the tasks of the paper"


def _open_tuned(*args: Any, **options: Any) -> Any:
    from cige.lattice_bert.tasks.ner import open_tuned

    return open_tuned(*args, **options)


def _load_features(*args: Any, **options: Any) -> Any:
    from cige.lattice_bert.encoder.features import LatticeBertFeatures

    return LatticeBertFeatures.load(*args, **options)


def _resolve_pretraining(recipe: str, overrides: list[str]) -> tuple[Any, dict[str, str]]:
    from cige.lattice_bert.pretraining.recipe import resolve_pretrain_recipe

    return resolve_pretrain_recipe(recipe, overrides)


def _resolve_tuning(recipe: str, overrides: list[str]) -> tuple[Any, dict[str, str]]:
    from cige.lattice_bert.tasks.config import resolve_tuning_config

    return resolve_tuning_config(recipe, overrides)


def _pretraining_command(name: str, file: str | None, output: str) -> str:
    return f"cige lattice-bert pretrain run {file or f'{PRETRAIN}/{name}'} --data DATA --output {output}"


def _tuning_command(name: str, file: str | None, output: str) -> str:
    recipe = f" --recipe {file}" if file else ""
    return f"cige lattice-bert finetune {name}{recipe} --model MODEL --data DATA --output {output}"


_KINDS = {
    TUNED: Kind(
        "`cige predict --model` and `cige.load` read it if the task was to find entities; in Python TunedModel."
        "from_pretrained reads every task. `cige lattice-bert pretrain explain --tuned` shows what it attends to, and "
        "the fine-tuned encoder is in its folder encoder/",
        open_finder=_open_tuned,
    ),
    PRETRAINED: Kind(
        "fine-tune it (`cige lattice-bert finetune TASK --model`), show what it attends to (`cige lattice-bert "
        "pretrain explain --model`), or read it with PretrainedLatticeBert.from_pretrained",
        load_features=_load_features,
    ),
}
EXTENSION = Extension(
    kinds=_KINDS,
    recipes={
        PRETRAIN: RecipeKind(_RECIPES / PRETRAIN, "pretrain/tiny", _resolve_pretraining, _pretraining_command),
        FINETUNE: RecipeKind(_RECIPES / FINETUNE, "finetune/tnews", _resolve_tuning, _tuning_command),
    },
    verbs={"lattice-bert": _ABOUT},
    aliases={"pretrain": ("lattice-bert", "pretrain"), "finetune": ("lattice-bert", "finetune")},
    chinese={_ABOUT: "预训练 Lattice-BERT，并在论文的任务上微调"},
    commands="cige.lattice_bert.commands",
)
