"""Label raw text with what taggers and LAC agree on, as additional training data.

    python annotations/agree_with_lac.py raw.txt lac.jsonl agreed.jsonl MODEL [MODEL ...]

`lac.jsonl` has a line for each line of `raw.txt`, as `run_lac.py` writes it: [whether LAC kept the text, [[start, end,
PER | LOC | ORG], ...]]. The score of an entity is its mean over the taggers, 0 for one that does not find it. Persons,
places and organisations count if LAC has the same span and kind, or if the taggers alone are very sure; types that LAC
does not know count by their score. Times are those of LAC, where no other entity is, since only one of the labelled
sets has times. Everything else that one of the programs found is left open.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from cige import Entity, Sentence, Span, load, write_sentences
from cige.data.sentence import OPEN

TIME = "TIME"
PARTS = "0123456789年月日"
COARSE = {"SCENE": "LOC", "COMPANY": "ORG", "GOVERNMENT": "ORG"}
AGREED, ALONE, OTHER = 0.35, 0.8, 0.55  # smallest scores: with LAC, without it, of types that LAC does not know
BLOCK = 4000


def joined(text: str, times: list[tuple[int, int]]) -> list[Span]:
    """Times as one where they touch; those before which LAC left out a part (7 月 in 7 月 16 日) are open."""
    spans: list[Span] = []
    for start, end in times:
        if spans and text[spans[-1].end : start].strip() == "":
            spans[-1] = Span(spans[-1].start, end, spans[-1].label)
            continue
        before = text[:start].rstrip()
        is_whole = not before or before[-1] not in PARTS
        first = start if is_whole else len(before.rstrip(PARTS + " "))
        spans.append(Span(first, end, TIME if is_whole else OPEN))
    return spans


def labelled(text: str, found: list[list[Entity]], of_lac: list[tuple[int, int, str]]) -> Sentence:
    """The sentence with the entities that count, and open stretches over the others.

    Args:
        found: the entities of each tagger.
        of_lac: (start, end, type) of LAC's persons, places, organisations and times.
    """
    lac = {(start, end): label for start, end, label in of_lac if label != TIME}
    times = joined(text, sorted((start, end) for start, end, label in of_lac if label == TIME))
    scores: dict[Span, float] = defaultdict(float)
    for entities in found:
        for e in entities:
            scores[Span(e.start, e.end, e.label)] += e.score / len(found)
    taken = [False] * len(text)
    spans, doubts = [], [Span(start, end, OPEN) for start, end in lac]
    scored = sorted(scores.items(), key=lambda item: -item[1])
    for span, score in [*scored, *((span, 1.0) for span in times)]:
        coarse = COARSE.get(span.label, span.label)
        agrees = lac.get((span.start, span.end)) == coarse
        least = AGREED if agrees else ALONE if coarse in ("PER", "LOC", "ORG") else OTHER
        if score >= least and not any(taken[span.start : span.end]):
            spans.append(span)
            taken[span.start : span.end] = [True] * (span.end - span.start)
        elif span.label not in (TIME, OPEN) or score < OTHER:
            doubts.append(span)
    for doubt in doubts:  # the parts that no entity has taken
        start = doubt.start
        for place in range(doubt.start, doubt.end + 1):
            if place == doubt.end or taken[place]:
                if start < place:
                    spans.append(Span(start, place, OPEN))
                    taken[start:place] = [True] * (place - start)
                start = place + 1
    return Sentence(text, tuple(sorted(spans)))


def sentences(
    raw: Path, lac: Path, models: list[str], *, max_open: float, keep_empty: float, seed: int
) -> Iterator[Sentence]:
    taggers, rng = [load(model) for model in models], random.Random(seed)
    with open(raw, encoding="utf-8") as texts, open(lac, encoding="utf-8") as rows:
        pairs = zip((line.rstrip("\n") for line in texts), map(json.loads, rows), strict=True)
        while block := list(islice(pairs, BLOCK)):
            found = [tagger([text for text, _ in block]) for tagger in taggers]
            for (text, (is_kept, of_lac)), *entities in zip(block, *found, strict=True):
                if not is_kept:
                    continue
                sentence = labelled(text, entities, [(a, b, x) for a, b, x in of_lac])
                n_open = sum(span.end - span.start for span in sentence.spans if span.label == OPEN)
                has_names = any(span.label != OPEN for span in sentence.spans)
                if n_open <= max_open * len(text) and (has_names or rng.random() < keep_empty):
                    yield sentence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", type=Path)
    parser.add_argument("lac", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--n", type=int, default=10**9, help="stop after this many sentences")
    parser.add_argument("--max-open", type=float, default=0.3, help="leave out sentences with more open text (0.3)")
    parser.add_argument("--keep-empty", type=float, default=0.3, help="share of sentences without names to keep (0.3)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    found = sentences(
        args.raw, args.lac, args.models, max_open=args.max_open, keep_empty=args.keep_empty, seed=args.seed
    )
    kept = list(islice(found, args.n))
    write_sentences(args.output, kept)
    counts = Counter(span.label for sentence in kept for span in sentence.spans)
    print(f"{args.output}: {len(kept):,} sentences; {', '.join(f'{k} {n:,}' for k, n in counts.most_common())}")


if __name__ == "__main__":
    main()
