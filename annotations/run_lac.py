"""Find names in raw text with LAC 2.1.2, in its own environment; the result is for agree_with_lac.py.

python annotations/run_lac.py raw.txt lac.jsonl
"""

import json
import sys

import paddle
import paddle.base

sys.modules["paddle.fluid"] = paddle.fluid = paddle.base  # the name by which LAC 2.1.2 knows it
sys.modules["paddle.fluid.core"] = paddle.base.core

from LAC import LAC  # noqa: E402

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
    lac = LAC(mode="lac")
    with open(raw, encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in file]
    with open(output, "w", encoding="utf-8") as out:
        for first in range(0, len(texts), BLOCK):
            block = texts[first : first + BLOCK]
            for text, (words, tags) in zip(block, lac.run(block), strict=True):
                out.write(json.dumps(["".join(words) == text, spans_of(words, tags)]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
