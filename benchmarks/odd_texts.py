"""Texts made to get offsets wrong: news in pieces, among characters that programs count differently."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

ODD = (
    *("😀", "👨\u200d👩\u200d👧", "🇨🇳", "𠮷", "𪚥", "é", "e\u0301", "ﾊﾟ", "Å", "ﬁ", "ＡＢＣ", "１２３", "①", "½"),
    *("\x00", "\x07", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u2029", "\u200b", "\u202e", "\ufeff", "\ufffd", "\u3000"),
    *(
        "\r\n",
        "\r",
        "\n\n",
        "\t",
        " ",
        "  ",
        "\u00a0",
        "臺灣",
        "蘋果電腦",
        "鄧小平",
        "ABC",
        "a" * 40,
        "https://例子.cn/?a=1",
    ),
    *("，。", "《", "》", "……", "——", "<b>&amp;</b>", '"\\', "'", "{}", "%s"),
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
