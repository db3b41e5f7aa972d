"""Train one run of a comparison and score it; its scores are kept in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from cige.api import load
from cige.data.reading import read_sentences
from cige.data.registry import dataset_file, load_split
from cige.data.sentence import Sentence
from cige.engine.run_folder import RESULT, SCORES
from cige.entities.scores import score
from cige.errors import CigeError, DataError
from cige.reports.finished_runs import RunScores, are_of_training, read_json, read_scores, run_folder, write_json
from cige.reports.significance import sentence_counts
from cige.training.files import find_file
from cige.training.recipe import Recipe
from cige.training.sources import digest_of_sentences, read_data
from cige.training.train import train

Split: TypeAlias = Literal["dev", "test"]


def run_one(recipe: Recipe, seed: int, runs: Path, data_dir: str | None, device: str) -> RunScores:
    """Train one run, score dev and test with the weights of its best epoch, and save the scores in its folder.

    Scores of an earlier call are returned, unless they are of another training or the sentences have changed since.
    """
    folder = run_folder(recipe, seed, runs)
    result = train(recipe, folder, seed=seed, data_dir=data_dir, device=device, show_progress=False)
    scores = read_scores(folder)
    if scores and are_of_training(scores, read_json(folder / RESULT)) and _are_current(scores, recipe, data_dir):
        return scores
    ner = load(result.model, precision="float32")
    scores = {
        "name": recipe.name,
        "architecture": recipe.architecture,
        "seed": seed,
        "seconds": result.seconds,
        "best_epoch": result.best_epoch,
        "n_parameters": result.n_parameters,
        "machine": result.machine,
        "sentences": {},
    }
    for split, sentences in splits_of(recipe, data_dir).items():
        scores["sentences"][split] = digest_of_sentences(sentences)
        predicted = list(ner.pipe([s.text for s in sentences]))
        gold = [list(s.spans) for s in sentences]
        report, counts = score(gold, predicted).to_dict(), sentence_counts(gold, predicted).tolist()
        scores |= {"dev": report, "dev_counts": counts} if split == "dev" else {"test": report, "test_counts": counts}
    write_json(folder / SCORES, scores)
    return scores


def _are_current(scores: RunScores, recipe: Recipe, data_dir: str | None) -> bool:
    """Whether scores are of the sentences that the data have now; scores can still be read if the data are gone."""
    if "sentences" not in scores:  # of an earlier version
        return True
    try:
        splits = splits_of(recipe, data_dir)
    except CigeError:
        return True
    return all(scores["sentences"].get(split) == digest_of_sentences(given) for split, given in splits.items())


def splits_of(recipe: Recipe, data_dir: str | None) -> dict[Split, list[Sentence]]:
    """The labelled sentences to score: dev, and test if there is one."""
    nested = recipe.head == "pair_grid"
    splits: dict[Split, list[Sentence]] = {"dev": read_data(recipe.data, data_dir, nested=nested)[1]}
    if recipe.data.dataset is None:
        if recipe.data.test is not None:
            splits["test"] = read_sentences(find_file(recipe.data.test, data_dir), nested=nested)
        return splits
    try:
        dataset_file(recipe.data.dataset, "test", data_dir=data_dir)
    except DataError:  # this data set has no test file
        return splits
    return splits | {"test": load_split(recipe.data.dataset, "test", data_dir=data_dir)}
