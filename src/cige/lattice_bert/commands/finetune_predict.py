"""Predict a task's test examples, or find the entities of texts, with a fine-tuned model.

For a data folder, the answers to a split are written in CLUE's format. For a text file, a model that was fine-tuned for
entities or word segmentation reads one text per line and writes JSON lines with the offsets of what it found.

Examples:
  cige lattice-bert finetune predict --model runs/tnews/model --data data --output tnews_predict.json
  cige lattice-bert finetune predict --model runs/msra/model --texts news.txt --output found.jsonl
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", "-m", required=True, metavar="FOLDER", help="fine-tuned model, or its hub id")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", metavar="FOLDER", help="folder with the data of tasks")
    source.add_argument("--texts", metavar="FILE", help="UTF-8 file with one text per line (plain, .gz or .xz)")
    parser.add_argument("--split", default="test", choices=("train", "dev", "test"), help="(default: test)")
    parser.add_argument("--output", "-o", required=True, metavar="FILE", help="file for the answers")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 ... (default: cpu)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.data.jsonl import format_json_lines
    from cige.data.sentence import Sentence
    from cige.data.text_files import read_text, write_text
    from cige.errors import DataError
    from cige.lattice_bert.tasks.registry import get_task
    from cige.lattice_bert.tasks.task_data import load_split
    from cige.lattice_bert.tasks.tuned import TunedModel
    from cige.nn.memory import keep_freed_memory

    keep_freed_memory()
    model = TunedModel.from_pretrained(args.model, device=args.device)
    if args.texts:
        if model.kind_name not in ("entities", "segmentation"):
            raise DataError(f"{args.model} is fine-tuned for {model.task}, whose input is not just texts; give --data")
        *lines, last = read_text(args.texts).split("\n")  # splitlines also splits at U+2028 and others, within a text
        sentences = [Sentence(line.removesuffix("\r")) for line in (*lines, *filter(None, [last]))]
        predicted = model.predict(sentences)
        marked = [Sentence(s.text, tuple(spans)) for s, spans in zip(sentences, predicted, strict=True)]
        write_text(args.output, format_json_lines(marked))
        return
    examples = load_split(get_task(model.task), args.data, args.split)
    answers = model.predict(examples)
    write_text(args.output, model.kind.write(examples, answers))
    if examples and all(map(model.kind.is_labelled, examples)):
        print(", ".join(f"{name} {100 * value:.2f}" for name, value in model.score(examples, answers).items()))
