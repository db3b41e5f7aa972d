"""Measure speed and memory; options after the name are passed to the benchmark (`cige bench flat --help`).

Examples:
  cige bench adapter    words at the input of a BERT (Lattice-BERT) or after one of its layers, pre-trained alike
  cige bench bulk       memory of each additional process of `cige annotate`
  cige bench coverage   requested and measured recall of `recall=`, and calibration of scores
  cige bench crf        the CRF against reference implementations
  cige bench engines    overhead of local processes, Ray and Spark over a plain loop over ner.pipe
  cige bench flat       the FLAT implementation against a literal transcription of the paper's equations
  cige bench fuzz       damaged input for all file readers and the matcher
  cige bench kernels    the CPU kernels for each instruction set, and PyTorch's operations
  cige bench kept       training steps with freed memory kept by the allocator or returned to the system
  cige bench kills      jobs of `cige annotate` killed at random moments: is the output byte-identical?
  cige bench lattice    from sentence to batch: matching, lattice, rows
  cige bench lexicon    lexicons of 0.3 to 8.8 million words: building, memory, speed
  cige bench match      word matching, sentence by sentence
  cige bench models     all architectures: time and memory
  cige bench onnx       end-to-end prediction with PyTorch and ONNX Runtime, in 32 and 8 bits
  cige bench parity     entities of the C runtime and of PyTorch on many texts
  cige bench peers      F1 and speed of cige, jieba, LAC and others on every labelled set
  cige bench predict    a prediction process: time to the first result, memory, characters per second
  cige bench precision  F1 and speed of the runtime in float32, bfloat16, int8 and int16
  cige bench pretrain   steps of pre-training
  cige bench rivals     cige and LAC alternately: characters per second by batch size and text length
  cige bench runtime    each runtime with the same weights: characters per second, stages, matrix products
  cige bench significance   false positives of `cige compare` for equal systems, on simulated tables
  cige bench scaling    pre-training on many GPUs and annotating 1 TB, simulated from measured rates
  cige bench serve      the HTTP server: latency, overload, characters per second
  cige bench soak       100,000 requests: memory; 100,000 unusual texts: offsets over HTTP, in spaCy and in files
  cige bench suggest    F1 by number of labelled sentences, chosen by `cige suggest` or at random
  cige bench tables     entities in tables, by cell separator
  cige bench tokens     text to lattice tokens: megabytes per second
  cige bench train      training steps, padding, memory
  cige bench wasm       the WebAssembly build against the native one: entities, loading, milliseconds per text
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
    *("adapter", "bulk", "card", "consistency", "coverage", "crf", "domains", "engines", "flat", "fuzz", "kept"),
    *("kernels", "kills", "lattice", "left_out", "lexicon", "match", "models", "onnx", "parity", "peers"),
    *("precision", "predict", "pretrain", "rivals", "runtime", "scaling", "serve", "significance", "soak", "suggest"),
    *("tables", "tokens", "train", "user_words_scale", "wasm"),
    FIGURES,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", choices=NAMES, help=", ".join(NAMES))
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options of the benchmark")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    script = FOLDER / ("figures.py" if args.name == FIGURES else f"bench_{args.name}.py")
    if not script.is_file():
        raise CigeError(f"{script}: not found; benchmarks are part of the source tree of cige, not of the package")
    before, sys.argv = sys.argv, [str(script), *args.options]
    sys.path.insert(0, str(FOLDER))  # as with `python benchmarks/bench_x.py`; the scripts share modules in this folder
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv = before
        sys.path.remove(str(FOLDER))
