"""Fine-tune a pre-trained Lattice-BERT on a task, or on all of the paper's.

Examples:
  cige lattice-bert finetune tnews --model runs/tiny/model --data data --output runs/tnews
  cige lattice-bert finetune all --model runs/tiny/model --data data --output runs/finetuned/tiny --grid lr --runs 5
  cige lattice-bert finetune table runs/finetuned/tiny runs/finetuned/tiny_bert_our
  cige lattice-bert finetune predict --model runs/tnews/model --data data --output tnews_predict.json
  cige lattice-bert finetune analyse tnews --model runs/our_tnews/model --model runs/tnews/model --data data
"""

from __future__ import annotations

import argparse

from cige.lattice_bert.commands import add_verb
from cige.lattice_bert.tasks.registry import TASKS

# Each is a file finetune_<name>.py in this folder; names of tasks are handled by finetune_task.py.
_VERBS = {
    "all": "all tasks, with the best learning rate and several runs: Table 6",
    "table": "tables of several models side by side",
    "predict": "answers of a fine-tuned model",
    "analyse": "where fine-tuned models differ: by length, words in keywords, nested entities",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="TASK|all|table|predict|analyse", required=True)
    for name, what in _VERBS.items():
        add_verb(verbs, name, what, f"finetune_{name}")
    for name, task in TASKS.items():
        add_verb(verbs, name, f"{task.title}: {task.kind}", "finetune_task").set_defaults(task=name)
