"""The same weights in C and in PyTorch on many texts: how many have other entities, and how far scores are apart.

    OMP_NUM_THREADS=1 python benchmarks/bench_parity.py --data-dir DATA --corpus DATA/corpus/zh_corpus.txt.xz

Texts are those of the development parts of Weibo, CLUENER, MSRA and Resume, then lines of the corpus, cut to --chars.
A text differs if one form finds a span or label in it that the other lacks; a tie between two readings may fall either
way, so the highest score of what only one form finds is reported beside the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from measure import add_data_option, environment, options, report, use_threads, write

from cige.api import NER
from cige.data import read_sentences
from cige.entities.entity import Entity
from cige.folders.hub import model_folder
from cige.lexicon.text_file import read_lines
from cige.models.model import LatticeModel
from cige.runtime.native_model import NativeModel

DEV = ("weibo", "cluener", "msra", "resume")


def texts_of(data_dir: Path, corpus: Path | None, *, n_chars: int) -> Iterator[str]:
    """Development sentences, then parts of the corpus's lines."""
    for name in DEV:
        path = data_dir / "ner" / name / "dev.bmes"
        if path.is_file():
            yield from (sentence.text for sentence in read_sentences(path))
    for _, raw in read_lines(corpus) if corpus is not None else ():
        line = raw.decode("utf-8", "replace")
        for first in range(0, len(line), n_chars):
            if part := line[first : first + n_chars].strip():
                yield part


def differences(answers: Iterable[tuple[Sequence[Entity], Sequence[Entity]]]) -> dict[str, Any]:
    """What two forms make of the same texts.

    Returns:
        The number of texts, of entities of the first form, of texts with other entities, the largest difference of
        scores of entities that both have, and the highest score of one that only one has (0 where there is none).
    """
    found = {"texts": 0, "entities": 0, "texts_that_differ": 0, "largest_score_difference": 0.0, "highest_of_one": 0.0}
    for one, other in answers:
        scores, others = ({(e.start, e.end, e.label): e.score for e in x} for x in (one, other))
        found["texts"] += 1
        found["entities"] += len(scores)
        found["texts_that_differ"] += scores.keys() != others.keys()
        apart = [abs(scores[key] - others[key]) for key in scores.keys() & others.keys()]
        found["largest_score_difference"] = max([found["largest_score_difference"], *apart])
        alone = [(scores | others)[key] for key in scores.keys() ^ others.keys()]
        found["highest_of_one"] = max([found["highest_of_one"], *alone])
    return found


def bench_parity(
    data_dir: Path, corpus: Path | None, *, n_texts: int, n_chars: int, batch_size: int, threads: int
) -> dict[str, Any]:
    """Both forms of the bundled model, for types as the model has them and for coarse ones."""
    use_threads(threads)
    texts = list(islice(texts_of(data_dir, corpus, n_chars=n_chars), n_texts))
    folder = model_folder()
    forms = NER(NativeModel.load(folder)), NER(LatticeModel.load(folder))
    rows = []
    for types in ("fine", "coarse"):
        some = texts if types == "fine" else texts[:: max(1, len(texts) // 1000)]
        answers = (ner.pipe(some, batch_size=batch_size, types=types) for ner in forms)
        rows.append({"types": types, "characters": sum(map(len, some))} | differences(zip(*answers, strict=True)))
    return {"environment": environment(threads=threads, n_rounds=1), "parity": rows}


def main() -> None:
    parser = options(__doc__, n_rounds=1)
    add_data_option(parser)
    parser.set_defaults(threads=1)
    parser.add_argument("--corpus", type=Path, help="raw text, a document or sentence a line; it may be compressed")
    parser.add_argument("--texts", type=int, default=20_000, help="(default: %(default)s)")
    parser.add_argument("--chars", type=int, default=60, help="of a part of the corpus (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="(default: %(default)s)")
    args = parser.parse_args()
    result = bench_parity(
        args.data_dir,
        args.corpus,
        n_texts=args.texts,
        n_chars=args.chars,
        batch_size=args.batch_size,
        threads=args.threads,
    )
    report("entities in C and in PyTorch", result["parity"])
    write(result, args.json)


if __name__ == "__main__":
    main()
