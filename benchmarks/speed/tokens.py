"""Text to lattice tokens: megabytes a second of one core.

"all lines" is how a corpus is tokenised for pre-training, blocks of lines at a time; "a line at a time" is one call for
each line; "pieces alone" leaves words out, as BERT-our does. Each reads the same lines, the first --megabytes of the
corpus (UTF-8 counted). Processor seconds, medians; jieba's part in `cige lattice-bert pretrain data` is not in it.
"""

from pathlib import Path
from typing import Annotated, Any

from benchmarks.measure import in_turns
from cige.errors import CigeError
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lexicon.text_file import read_lines

TABLES = {"rows": "{n_lines:,} lines, {n_words:,} words beside word pieces"}


def bench(
    corpus: Annotated[Path, "UTF-8 text; plain, .gz or .xz"],
    *,
    vocab: Annotated[Path, "folder that `cige lattice-bert pretrain vocab` wrote"],
    megabytes: Annotated[float, "of the corpus"] = 10,
    rounds: int = 3,
) -> dict[str, Any]:
    """A row a way."""
    vocabulary, lines = JointVocabulary.load(vocab), first_lines(corpus, megabytes)
    if not lines:
        raise CigeError(f"{corpus}: no line with text in the first {megabytes:g} MB; give a corpus of some text")
    lattice, pieces = LatticeTokenizer(vocabulary), LatticeTokenizer(vocabulary, use_words=False)
    ways = {
        "all lines": lambda: sum(x.n_tokens for x in lattice.tokenize_all(lines)),
        "a line at a time": lambda: sum(x.n_tokens for x in map(lattice.tokenize, lines)),
        "all lines, pieces alone": lambda: sum(x.n_tokens for x in pieces.tokenize_all(lines)),
    }
    n_bytes, n_chars = sum(len(line.encode()) for line in lines), sum(map(len, lines))
    rows = []
    for what, timing in in_turns(ways, n_rounds=rounds).items():
        row = {"what": what, "MB a second": n_bytes / timing.processor / 1e6}
        row |= {"characters a second": n_chars / timing.processor, "tokens a character": ways[what]() / n_chars}
        rows.append(row)
    words = {"n_pieces": len(vocabulary.pieces), "n_words": len(vocabulary.words)}
    return words | {"n_lines": len(lines), "rows": rows}


def first_lines(corpus: Path, megabytes: float) -> list[str]:
    """Lines that hold text, until they come to that many megabytes."""
    lines: list[str] = []
    n_bytes = 0
    for _, raw in read_lines(corpus):
        if n_bytes >= megabytes * 1e6:
            break
        if line := raw.decode("utf-8", "replace").strip():
            lines.append(line)
            n_bytes += len(raw)
    return lines
