"""What the papers report for each system (papers.yaml), and the recipes of a leaderboard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cige.recipes.shipped import TAGGING, shipped
from cige.recipes.yaml_file import read_layer

DATA_SETS = ("weibo", "resume", "ecommerce", "cluener", "msra")


@dataclass(frozen=True)
class Paper:
    """A system as its paper has it.

    Attributes:
        paper: name, authors, venue and year.
        twin: the system with the same network and no words; None if the system reads none.
        scores: strict F1 on the test set in per cent, by data set.
        differs, differs_zh: why a score of this project is not the paper's, in one sentence.
    """

    paper: str
    twin: str | None
    scores: dict[str, float]
    differs: str
    differs_zh: str


@cache
def papers() -> dict[str, Paper]:
    """The systems of the papers, by name."""
    path = Path(__file__).with_name("papers.yaml")
    return {system: Paper(**values) for system, values in read_layer(path, called=path.name).values.items()}


def board_recipes() -> list[str]:
    """The names of all recipes of the leaderboard: systems of papers and their twins, on each data set."""
    systems = list(papers()) + [paper.twin for paper in papers().values() if paper.twin]
    names = [f"{data}/{system}" for data in DATA_SETS for system in systems]
    return [name for name in names if name in shipped() and shipped()[name].kind == TAGGING]
