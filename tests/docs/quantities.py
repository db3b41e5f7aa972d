"""The quantities that a page names, in English or Chinese notation, so that a page can be compared with its twin.

29.3M, 28.5 million and 2,850 万 are written differently and are the same kind of number: all are read as plain numbers.
Numbers that are part of a name (int8, H100) or spelled out (twelve, 十二) are no quantities here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

_SCALES = {"M": 10**6, "million": 10**6, "billion": 10**9, "万": 10**4, "亿": 10**8}
_NUMBER = r"(?<![A-Za-z\d._])\d+(?:,\d{3})*(?:\.\d+)*"
_SCALED = rf"(?P<numbers>{_NUMBER}(?:(?:, | and | to ){_NUMBER})*) ?(?P<scale>million|billion|M\b|万|亿)"
_QUANTITY = re.compile(f"{_SCALED}|{_NUMBER}")


def quantities(text: str) -> list[str]:
    """The quantities of a text, sorted, as plain decimal numbers; a version such as 2.13.0 stays as it is."""
    return sorted(_read(text))


def _read(text: str) -> Iterator[str]:
    for found in _QUANTITY.finditer(text):
        scale = _SCALES[found["scale"]] if found["scale"] else 1
        for number in re.findall(_NUMBER, found["numbers"] or found[0]):
            plain = number.replace(",", "")
            yield plain if plain.count(".") > 1 else f"{(Decimal(plain) * scale).normalize():f}"
