"""A program of programs.py behind a pipe: JSON [texts, batch size] a line in, [spans by text, processor seconds] out.

    python -m benchmarks.parts.program_worker cige FOLDER

So each program has a process to itself, as a user of it has: libraries that others import (PyTorch alone makes some
100,000 objects) would make the garbage collection of Python slower for all of them.
"""

import json
import os
import sys
import time

from benchmarks.parts import programs


def main(program: str, *arguments: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a program prints is no answer
    read = getattr(programs, program)(*arguments).find
    for line in sys.stdin:
        spans = [[(s.start, s.end, s.label) for s in of_text] for of_text in read(*json.loads(line))]
        answers.write(json.dumps([spans, time.process_time()]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
