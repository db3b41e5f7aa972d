"""What stress tests share: texts made to get offsets wrong, a folder in memory, and what a message may look like.

The texts are news in pieces, among characters that programs count differently.
"""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cige.errors import CigeError

ROOT = Path(__file__).resolve().parents[2]
NEWS = ROOT / "examples" / "news.txt"
MEMORY = Path("/dev/shm")
MOST_TOLD = 2000  # characters of a message, however long what it is about
ODD = (
    *("😀", "👨\u200d👩\u200d👧", "🇨🇳", "𠮷", "𪚥", "é", "e\u0301", "ﾊﾟ", "Å", "ﬁ", "ＡＢＣ", "１２３", "①", "½"),
    *("\x00", "\x07", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u2029", "\u200b", "\u202e", "\ufeff", "\ufffd", "\u3000"),
    *("\r\n", "\r", "\n\n", "\t", " ", "  ", "\u00a0", "臺灣", "蘋果電腦", "鄧小平", "ABC", "a" * 40),
    *("https://例子.cn/?a=1", "，。", "《", "》", "……", "——", "<b>&amp;</b>", '"\\', "'", "{}", "%s"),
)


def odd_texts(file: Path, n: int, *, seed: int, length: int = 20) -> Iterator[str]:
    """`n` texts of about `length` characters, most with something odd in them; the same for the same seed."""
    rng = random.Random(seed)
    news = file.read_text(encoding="utf-8").replace("\n", "")
    for _ in range(n):
        text = ""
        while len(text) < length:
            if rng.random() < 0.4:
                text += rng.choice(ODD)
            else:
                start = rng.randrange(len(news))
                text += news[start : start + rng.randint(2, 14)]
        yield text


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory, where there is such a thing, for files that are written thousands of times a second."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def check_message(told: CigeError) -> None:
    """A message is one line of a length that people read."""
    lines = str(told).splitlines()
    assert len(lines) == 1 and lines[0].strip(), f"expected one line, found {lines[:50]}"
    assert len(lines[0]) < MOST_TOLD, f"a message of {len(lines[0]):,} characters"
