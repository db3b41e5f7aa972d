"""train: train a model with a recipe.

    cige train weibo/flat --seed 1 --output runs/weibo/flat
    torchrun --nproc-per-node 4 -m cige.cli train weibo/flat --output runs/weibo/flat      # the same on four GPUs

The output folder contains recipe.yaml (all settings), checkpoint-N (for resuming), best.safetensors, result.json
(development scores of each epoch) and model/ (which `cige.load` reads).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from cige.engine.checkpoint import reporting_write_errors
from cige.engine.devices import machine_facts
from cige.engine.run import RunKind, Training, run
from cige.engine.run_config import RunConfig
from cige.engine.run_folder import RunResult, result_values
from cige.engine.trainer import Trainer
from cige.entities.label_facts import LabelFacts, learn_max_lengths
from cige.errors import CigeError, RecipeError
from cige.folders.manifest import FileEntry
from cige.models.model import GridModel, LatticeModel
from cige.training.dataset import TrainingSet
from cige.training.inputs import changed_inputs, inputs_of
from cige.training.objective import EvaluationSet, TaggingObjective, learning_rate_scales
from cige.training.recipe import Recipe, load_recipe
from cige.training.setup import TrainingSetup, gold_of, set_up
from cige.training.sources import comparable_in, digest_of, golds_of, mix_of, read_sources, warn_of_misleading_scores

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True, kw_only=True)
class TrainResult(RunResult):
    """The result of a run.

    Attributes:
        dev_f1: strict development F1 of the best weights, 0..1; best_epoch: their epoch, from 1.
        seconds: time of training and evaluation, including earlier sessions of a resumed run.
        n_parameters: number of trained parameters; padding_share: of node pairs computed on padding, 0..1.
        history: a record per epoch, with `train["loss"]` and the `scores` "f1", "precision" and "recall".
        sentences: sha256 (hex) of the training and the development sentences; "" in results of earlier versions.
        inputs: size and sha256 of what else was read (`inputs_of`); empty in results of earlier versions.
    """

    name: str
    seed: int
    dev_f1: float
    best_epoch: int
    seconds: float
    n_parameters: int
    padding_share: float
    machine: dict[str, object]
    sentences: str = ""
    inputs: dict[str, FileEntry] = field(default_factory=dict)


def train(
    recipe: Recipe,
    output_dir: str | Path,
    *,
    seed: int = 1,
    data_dir: str | Path | None = None,
    device: str = "auto",
    resume: bool = True,
    show_progress: bool = True,
) -> TrainResult:
    """Train with a recipe and write the model folder `output_dir/model`, in one process or as one of several.

    With `resume`, an interrupted run continues from its last checkpoint and ends with the same weights as without the
    interruption (bit for bit on the same machine with one thread). A finished run is not repeated; its result is
    returned.

    Args:
        seed: determines initial weights, order of sentences, dropout and simulated user words.
        data_dir: folder of data sets and vectors; the default is $CIGE_DATA and the cache.
        device: "auto" (a GPU if there is one), "cpu" or "cuda".

    Raises:
        CigeError: see its subclasses; a RecipeError if `output_dir` contains a run of another recipe or seed, or one on
            other sentences, or with another start model or other files.
    """
    folder = Path(output_dir)
    begin = partial(_begin, recipe, folder, seed, data_dir)
    kind = RunKind(TrainResult, load_recipe, check_finished=partial(_check_inputs, recipe, data_dir))
    result = run(kind, begin, folder, recipe, seed=seed, device=device, resume=resume, show_progress=show_progress)
    assert result is not None  # no time to stop was given
    return result


def _check_inputs(recipe: Recipe, data_dir: str | Path | None, result: TrainResult) -> None:
    """Raise a RecipeError if sentences or files have changed since a run with them was finished; they may be gone."""
    what = ""
    if changed := changed_inputs(result.inputs, recipe, data_dir):
        what = f"with other files: {', '.join(changed)} changed since"
    try:
        sources, _ = read_sources(recipe.data, data_dir, nested=recipe.head == "pair_grid")
        if result.sentences not in ("", digest_of(sources)):
            what = "on other sentences: a file of the data has changed since"
    except CigeError:
        pass
    if what:
        raise RecipeError(
            f"{result.folder} holds a finished run {what}; choose another output folder, delete this one, or start "
            "over with resume=False (--no-resume)"
        )


def _begin(
    recipe: Recipe, folder: Path, seed: int, data_dir: str | Path | None, accelerator: Accelerator
) -> Training[TrainResult]:
    setup = set_up(recipe, seed=seed, data_dir=data_dir)
    if accelerator.is_main_process:
        warn_of_misleading_scores(setup.sources)
    inputs = inputs_of(recipe, data_dir) if accelerator.is_main_process else {}
    objective = _objective(recipe, setup, seed)

    def finish(trainer: Trainer) -> TrainResult:
        best = trainer.load_best()
        result = TrainResult(
            name=recipe.name,
            seed=seed,
            dev_f1=best.score,
            best_epoch=best.epoch,
            seconds=trainer.state.total_seconds,
            n_parameters=sum(p.numel() for p in setup.tagger.parameters() if p.requires_grad),
            padding_share=objective.plan.padding_share(),
            folder=folder,
            history=tuple(trainer.state.records),
            machine=machine_facts(accelerator),
            sentences=digest_of(setup.sources),
            inputs=inputs,
        )
        if accelerator.is_main_process:
            with reporting_write_errors(folder):
                _model(recipe, setup, result_values(result)).save(result.model)
        return result

    scales = learning_rate_scales(setup.tagger, recipe.optimizer)
    config = RunConfig.in_epochs(recipe, name=recipe.name, n_steps=objective.n_steps, scales=scales)
    return Training(setup.tagger, config, setup.fingerprint(), [objective], finish)


def _objective(recipe: Recipe, setup: TrainingSetup, seed: int) -> TaggingObjective:
    scheme, tagger = recipe.data.scheme, setup.tagger
    mix, source_of = mix_of(setup.sources, seed)
    train_set = TrainingSet(
        setup.train,
        setup.train_lattices,
        vocabulary=setup.vocabulary,
        golds=golds_of(setup.sources, tagger.tags, scheme, setup.labels, hidden_odds=recipe.data.hidden_odds)
        if setup.head is None
        else [gold_of(setup.head, tagger.tags)],
        regime=recipe.user_words,
        gazetteers=recipe.gazetteers,
        seed=seed,
        mix=mix,
        source_of=source_of,
        mentions=recipe.mentions,
        snapshot=setup.lexicon.snapshot(),
    )
    dev_sets, begin = {}, 0
    for source in setup.sources:
        lattices = setup.dev_lattices[begin : begin + len(source.dev)]
        begin += len(source.dev)
        if source.dev:
            dev_sets[source.name] = EvaluationSet(
                source.dev,
                lattices,
                vocabulary=setup.vocabulary,
                scheme=scheme,
                max_pairs=recipe.batches.max_pairs,
                comparable=comparable_in(source, setup.labels, recipe.data.silent),
            )
    return TaggingObjective(train_set, dev_sets, batches=recipe.batches, n_epochs=recipe.training.n_epochs, seed=seed)


def _label_facts(recipe: Recipe, setup: TrainingSetup) -> LabelFacts:
    """The hierarchy of labels, the silent labels, and the maximum length of entities in training."""
    longest = learn_max_lengths(setup.train)
    lines = [source.tree.line(label) for source in setup.sources for label in setup.labels]
    parents = {child: parent for line in lines for child, parent in pairwise(line)}
    return LabelFacts(
        parents=parents,
        silent=frozenset(recipe.data.silent).intersection(setup.labels),
        coarse_labels=frozenset(recipe.data.coarse).intersection(setup.labels),
        max_lengths={label: n for label, n in longest.items() if label in setup.labels},
        nested=setup.head is not None,
    )


def _model(recipe: Recipe, setup: TrainingSetup, facts: dict[str, object]) -> LatticeModel:
    make: Callable[..., LatticeModel] = LatticeModel if setup.head is None else partial(GridModel, pair_grid=setup.head)
    return make(
        tagger=setup.tagger.eval(),
        vocabulary=setup.vocabulary,
        lexicon=setup.lexicon,
        config=recipe.model,
        labels=setup.labels,
        architecture=recipe.architecture,
        scheme=recipe.data.scheme,
        label_facts=_label_facts(recipe, setup),
        facts=facts | {"recipe": asdict(recipe)} | ({"names": dict(setup.names)} if setup.names else {}),
    )


if __name__ == "__main__":
    raise SystemExit("training is a command: cige train RECIPE --output FOLDER")
