"""Measure speed and memory; options after the name are the benchmark's own (`cige bench flat --help`).

Examples:
  cige bench bulk       memory that each further process of `cige annotate` adds
  cige bench coverage   what `recall=` promises and finds, and how honest scores are
  cige bench crf        the CRF against its plain forms
  cige bench engines    what local processes, Ray and Spark add to a plain loop over ner.pipe
  cige bench flat       the shipped FLAT against a literal transcription of the paper's equations
  cige bench fuzz       damaged input for every reader of files, and for the matcher
  cige bench kernels    the CPU kernels at each level of instruction sets, and PyTorch's operations
  cige bench kept       training steps with freed memory kept and given back
  cige bench kills      jobs of `cige annotate` killed at random moments: are the bytes the same?
  cige bench lattice    from a sentence to a batch: matching, lattice, rows
  cige bench lexicon    a lexicon from 0.3 to 8.8 million words: building, memory, speed
  cige bench match      word matching, a sentence at a time
  cige bench models     every architecture: seconds and memory
  cige bench onnx       prediction end to end on PyTorch and on ONNX Runtime, in 32 and 8 bits
  cige bench parity     entities in C and in PyTorch on many texts
  cige bench peers      F1 and speed of cige, jieba, LAC and others on every labelled set
  cige bench predict    a prediction process: seconds to the first answer, memory, characters a second
  cige bench precision  F1 and speed of the runtime in float32, bfloat16 and int8
  cige bench pretrain   steps of pre-training
  cige bench rivals     cige and LAC in turns: characters a second by batch and length of texts
  cige bench runtime    text to entities in each form of the same weights: characters a second, stages, products
  cige bench significance   how often `cige compare` tells equal systems apart, on simulated tables
  cige bench scaling    pre-training on many GPUs and annotating 1 TB, simulated from measured rates
  cige bench serve      the HTTP server: seconds to an answer, overload, characters a second
  cige bench soak       100,000 requests: memory; 100,000 odd texts: offsets over HTTP, in spaCy and in files
  cige bench suggest    F1 by labelled sentences: chosen by `cige suggest`, and at random
  cige bench tables     entities in tables, by what sets the cells apart
  cige bench tokens     text to lattice tokens: megabytes a second
  cige bench train      steps of training, padding, memory
  cige bench wasm       the browser's form against the native one: entities, loading, milliseconds a text
  cige bench figures    draw docs/figures from the results in docs/bench
"""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from cige.errors import CigeError

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
FIGURES = "figures"
NAMES = (
    *("bulk", "card", "consistency", "coverage", "crf", "domains", "engines", "flat", "fuzz", "kept", "kernels"),
    *("kills", "lattice", "left_out", "lexicon", "match", "models", "onnx", "parity", "peers", "precision", "predict"),
    *("pretrain", "rivals", "runtime", "scaling", "serve", "significance", "soak", "suggest", "tables", "tokens"),
    *("train", "wasm"),
    FIGURES,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", choices=NAMES, help=", ".join(NAMES))
    parser.add_argument("options", nargs=argparse.REMAINDER, help="passed on to the benchmark")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    script = FOLDER / ("figures.py" if args.name == FIGURES else f"bench_{args.name}.py")
    if not script.is_file():
        raise CigeError(f"{script}: not there; benchmarks come with the source tree of cige, not with the package")
    before, sys.argv = sys.argv, [str(script), *args.options]
    sys.path.insert(0, str(FOLDER))  # as `python benchmarks/bench_x.py` would; scripts share modules there
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv = before
        sys.path.remove(str(FOLDER))
