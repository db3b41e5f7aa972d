"""`cige lattice-bert finetune`, run in this process; its errors are exceptions."""

from __future__ import annotations

import argparse

from cige.lattice_bert.commands import finetune


def call(*argv: object) -> None:
    parser = argparse.ArgumentParser()
    finetune.add_arguments(parser)
    args = parser.parse_args([str(word) for word in argv])
    args.run(args)
