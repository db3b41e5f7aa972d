"""Fonts of this machine that have the characters of a text, those for Chinese first."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from cige.errors import CigeError

SIMPLIFIED = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei")
_PREFERRED = (*SIMPLIFIED, "Noto Sans CJK", "Source Han Sans", "PingFang", "WenQuanYi", "SimHei", "DejaVu Sans")


@dataclass(frozen=True)
class Fonts:
    """Font families that together have the letters of a text.

    Attributes:
        families: their names, the preferred one first.
        files: the regular and bold font files of the families.
        missing: symbols that no font of this machine has.
    """

    families: list[str]
    files: list[str]
    missing: frozenset[str]

    @classmethod
    def for_text(cls, lines: Iterable[str]) -> Fonts:
        """The fonts for all characters of some lines.

        Raises:
            CigeError: no font has a letter or a Chinese character; the error says what to install.
        """
        left = {char for line in lines for char in line if not char.isspace()}
        families: list[str] = []
        files: list[str] = []
        for family, family_files in candidates():
            if not left:
                break
            if has := left & _characters_of(family_files[0]):
                families.append(family)
                files += family_files
                left -= has
        letters = sorted(char for char in left if unicodedata.category(char)[0] == "L")
        if letters:
            shown = " ".join(f"{char} (U+{ord(char):04X})" for char in letters[:5])
            raise CigeError(
                f"no font on this machine has {shown}{' ...' if len(letters) > 5 else ''}; install one that does, such "
                "as Noto Sans CJK (Debian and Ubuntu: apt-get install fonts-noto-cjk), or write .svg or .html, which "
                "are shown with the fonts of the machine that opens them"
            )
        return cls(families or ["DejaVu Sans"], files, frozenset(left))

    def shown(self, text: str) -> str:
        """`text` with the code point of each missing symbol in its place, such as "U+1FAE8"."""
        if not self.missing & set(text):
            return text
        return "".join(f"U+{ord(char):X}" if char in self.missing else char for char in text)


def candidates() -> Iterator[tuple[str, list[str]]]:
    """Font families here and their files, the regular one first; for Chinese in a preferred order, then others."""
    from matplotlib import font_manager

    found: dict[str, dict[bool, str]] = {}  # family -> is bold -> file
    for entry in font_manager.fontManager.ttflist:
        is_plain = entry.style == "normal" and entry.stretch == "normal"
        if is_plain and entry.weight in (400, 700, "normal", "regular", "bold"):
            found.setdefault(entry.name, {})[entry.weight in (700, "bold")] = entry.fname
    for entry in font_manager.fontManager.ttflist:  # a family that has neither is better than none
        found.setdefault(entry.name, {False: entry.fname})

    def rank(family: str) -> tuple[int, str]:
        known = [k for k, prefix in enumerate(_PREFERRED) if family.startswith(prefix)]
        return (known[0] if known else len(_PREFERRED), family)

    for family in sorted(found, key=rank):
        # Matplotlib's Last Resort claims every character and draws each as a box.
        if not family.startswith("Last Resort"):
            yield family, [found[family][bold] for bold in (False, True) if bold in found[family]]


@cache
def _characters_of(path: str) -> frozenset[str]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a file that was removed, or that this FreeType cannot read
        return frozenset()
