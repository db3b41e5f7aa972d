"""Find names in raw text with LAC 2.1.2; the result is for agree_with_lac.py.

LAC has an environment of its own; benchmarks/parts/lac_worker.py says how it is made.

python annotations/run_lac.py raw.txt lac.jsonl
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks" / "parts"))
from lac_worker import model

TYPES = {"PER": "PER", "LOC": "LOC", "ORG": "ORG", "nr": "PER", "ns": "LOC", "nt": "ORG", "TIME": "TIME", "t": "TIME"}
BLOCK = 256


def spans_of(words, tags):
    """[[start, end, type], ...] of one text."""
    place, spans = 0, []
    for word, tag in zip(words, tags, strict=True):
        if tag in TYPES:
            spans.append([place, place + len(word), TYPES[tag]])
        place += len(word)
    return spans


def main(raw, output):
    lac = model()
    with open(raw, encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in file]
    with open(output, "w", encoding="utf-8") as out:
        for first in range(0, len(texts), BLOCK):
            block = texts[first : first + BLOCK]
            for text, (words, tags) in zip(block, lac.run(block), strict=True):
                out.write(json.dumps(["".join(words) == text, spans_of(words, tags)]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
