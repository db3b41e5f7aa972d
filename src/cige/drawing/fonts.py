"""Find fonts on this machine that have the characters of a text, with fonts for Chinese first."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from cige.errors import CigeError

SIMPLIFIED = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei")
_PREFERRED = (*SIMPLIFIED, "Noto Sans CJK", "Source Han Sans", "PingFang", "WenQuanYi", "SimHei", "DejaVu Sans")


@dataclass(frozen=True)
class Fonts:
    """Font families that together cover the letters of a text.

    Attributes:
        families: their names, the preferred one first.
        files: the regular and bold font files of the families.
        missing: symbols that no font on this machine has.
    """

    families: list[str]
    files: list[str]
    missing: frozenset[str]

    @classmethod
    def for_text(cls, lines: Iterable[str]) -> Fonts:
        """Find the fonts for all characters of some lines.

        Raises:
            CigeError: a letter or a Chinese character is in no font; the error says what to install.
        """
        chars = frozenset(char for line in lines for char in line if not char.isspace())
        families, files, left = _cover(chars)
        letters = _letters_of(left)
        if letters and _learn_new_fonts():
            families, files, left = _cover(chars)
            letters = _letters_of(left)
        if letters:
            shown = " ".join(f"{char} (U+{ord(char):04X})" for char in letters[:5])
            raise CigeError(
                f"no font on this machine has {shown}{' ...' if len(letters) > 5 else ''}; install one that does, such "
                "as Noto Sans CJK (Debian and Ubuntu: apt-get install fonts-noto-cjk), or write .svg or .html, which "
                "are shown with the fonts of the machine that opens them"
            )
        if left:  # what is shown in their place needs a font as well
            families, files, _ = _cover(chars | set("U+0123456789ABCDEF"))
        return cls(families or ["DejaVu Sans"], files, frozenset(left))

    def shown(self, text: str) -> str:
        """`text` with each missing symbol replaced by its code point, such as "U+1FAE8"."""
        if not self.missing & set(text):
            return text
        return "".join(f"U+{ord(char):X}" if char in self.missing else char for char in text)


def _cover(chars: frozenset[str]) -> tuple[list[str], list[str], set[str]]:
    """Families, files of these, and the characters that no font has."""
    left, families, files = set(chars), [], []
    for family, family_files in candidates():
        if not left:
            break
        if has := left & _characters_of(family_files[0]):
            families.append(family)
            files += family_files
            left -= has
    return families, files, left


def _letters_of(chars: Iterable[str]) -> list[str]:
    return sorted(char for char in chars if unicodedata.category(char)[0] == "L")


def _learn_new_fonts() -> bool:
    """Register fonts that were installed after Matplotlib wrote its font list; returns whether there are any.

    Matplotlib caches its list in a file in the user's home and does not update it.
    """
    from matplotlib import font_manager

    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    n_before = len(font_manager.fontManager.ttflist)
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        with suppress(OSError, RuntimeError, ValueError):  # a file that this version of FreeType cannot read
            font_manager.fontManager.addfont(path)
    return len(font_manager.fontManager.ttflist) > n_before


def candidates() -> Iterator[tuple[str, list[str]]]:
    """Installed font families and their files, the regular file first; preferred Chinese families come first."""
    from matplotlib import font_manager

    files: dict[str, dict[bool, str]] = {}  # family -> is bold -> file
    # Matplotlib's list may be older than the removal of a font.
    listed = [entry for entry in font_manager.fontManager.ttflist if os.path.isfile(entry.fname)]
    for entry in listed:
        is_plain = entry.style == "normal" and entry.stretch == "normal"
        if is_plain and entry.weight in (400, 700, "normal", "regular", "bold"):
            files.setdefault(entry.name, {})[entry.weight in (700, "bold")] = entry.fname
    for entry in listed:  # a family with neither is better than no family
        files.setdefault(entry.name, {False: entry.fname})

    def rank(family: str) -> tuple[int, str]:
        known = [k for k, prefix in enumerate(_PREFERRED) if family.startswith(prefix)]
        return (known[0] if known else len(_PREFERRED), family)

    for family in sorted(files, key=rank):
        # Matplotlib's Last Resort claims every character and draws each as a box.
        if not family.startswith("Last Resort"):
            yield family, [files[family][bold] for bold in (False, True) if bold in files[family]]


@cache
def _characters_of(path: str) -> frozenset[str]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # the file was removed, or this version of FreeType cannot read it
        return frozenset()
