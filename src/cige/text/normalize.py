"""Normalisation that maps each code point to exactly one code point, so offsets refer to the user's own string."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from unicodedata import normalize as normal_form

# Maps full-width ASCII (U+FF01..U+FF5E) to half width, the ideographic space to a space, and rarer hyphens (such as the
# one that chatbots write in GPT‑5) and middle dots (such as the Japanese one) to the usual ones. The Chinese marks
# ，！？：；（） stay full-width, because they are full-width in the corpora that vectors are trained on.
_KEPT = set("！（），：；？")
_HYPHENS, _DOTS = "\u2010\u2011\u2212", "\u2027\u2219\u22c5\u30fb\uff65"
_SIGNS = {"\u3000": " "} | dict.fromkeys(_HYPHENS, "-") | dict.fromkeys(_DOTS, "·")
WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in _KEPT} | _SIGNS

# Traditional to simplified characters, from OpenCC's TSCharacters.txt (Apache License 2.0). If there are several
# simplified forms, the first is used. Characters of GB 2312, the character set of simplified text, are not mapped,
# except 後, 於, 麽 and 菸, which are rare in simplified text.
SIMPLIFIED = {
    pair[0]: pair[1] for pair in Path(__file__).with_name("traditional.txt").read_text(encoding="utf-8").split()
}
# Radicals and compatibility ideographs, which look like other characters and stand for them in the text of many PDF
# files (⻓沙 is 长沙). The pairs of radicals, which no normal form replaces, are those of Unicode's
# EquivalentUnifiedIdeograph.txt with a character of 16 bits.
_RADICALS = (
    "⺁厂⺂乛⺃乚⺄乙⺅亻⺆冂⺈刀⺉刂⺊卜⺋㔾⺌小⺍小⺎兀⺏尣⺐尢⺒巳⺓幺⺔彑⺕彐⺖忄⺗心⺘扌⺙攵⺛旡⺜日"
    "⺝月⺞歺⺟母⺠民⺡氵⺢氺⺣灬⺤爫⺥爫⺦丬⺧牛⺨犭⺩王⺫目⺬示⺭礻⺯糹⺰纟⺱罓⺲罒⺳㓁⺴冗⺶羊⺹耂⺺肀"
    "⺻聿⺼肉⺾艹⺿艹⻀艹⻁虎⻂衤⻃覀⻄西⻅见⻆角⻈讠⻉贝⻋车⻌辶⻍辶⻎辶⻏邑⻐钅⻑長⻒镸⻓长⻔门⻖阝⻗雨"
    "⻘青⻙韦⻚页⻛风⻜飞⻝食⻟飠⻠饣⻢马⻣骨⻤鬼⻥鱼⻦鸟⻧卤⻨麦⻩黄⻪黾⻫斉⻬齐⻭歯⻮齿⻯竜⻰龙⻱龜⻲亀"
    "⻳龟"
)
_COMPATIBLE = (*range(0x2F00, 0x2FD6), *range(0xF900, 0xFB00), *range(0x2F800, 0x2FA20))
UNIFIED = {
    char: SIMPLIFIED.get(same, same)
    for char, same in [
        *zip(_RADICALS[::2], _RADICALS[1::2], strict=True),
        *((chr(code), normal_form("NFKC", chr(code))) for code in _COMPATIBLE),
    ]
    if same != char
}
# Subscripts of names of drugs, substances and genes (维生素B₁₂), which are written with usual digits as often.
SUBSCRIPTS = {chr(0x2080 + digit): str(digit) for digit in range(10)}
# Marks and spaces that a user's word may have where the text has another one, by whatever was typed or pasted:
# 上海医药(集团) and 上海医药（集团）, Levi's and Levi’s, and the spaces of web pages at which no line breaks. The
# network reads both as they are, but a user's word is the same word.
_SPACES = "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
MARKS = {mark: chr(ord(mark) - 0xFEE0) for mark in sorted(_KEPT)} | dict.fromkeys(_SPACES, " ")
MARKS |= {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2022": "·"}
# Characters without width that web pages have within words, such as where a line may break, and that joined files have
# around them: words are matched as if they were not there.
INVISIBLE = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
_INVISIBLE = re.compile(f"[{''.join(sorted(INVISIBLE))}]+")
_NO_CHARS = dict.fromkeys(map(chr, range(0xD800, 0xE000)), "\ufffd")  # lone surrogates
_COMPILE_AFTER = 16_384  # characters: looking them up one by one takes as long as compiling the longer pattern, 3 ms


class Folding:
    """Replaces single characters of texts.

    A pattern finds the characters to replace faster than they are looked up, but is compiled first. That would be felt
    at the start of a program that reads a few sentences, so it is compiled once enough characters have been looked up.

    Args:
        changes: character -> the character that replaces it, besides U+FFFD for lone surrogates; no ASCII characters.
        compile_after: the number of characters after which the pattern is compiled.
    """

    def __init__(self, changes: Mapping[str, str], *, compile_after: int = _COMPILE_AFTER) -> None:
        self._changes = dict(changes) | _NO_CHARS
        self._chars = "".join(changes)
        self._n_left = compile_after
        self._pattern: re.Pattern[str] | None = None

    def __call__(self, text: str) -> str:
        """The text, itself if nothing in it changes."""
        if text.isascii():
            return text
        if self._pattern is None:
            self._n_left -= len(text)
            if self._n_left >= 0:
                if self._changes.keys().isdisjoint(text):
                    return text
                return "".join(map(self._changes.get, text, text))  # type: ignore[arg-type]  # no key gives None
            self._pattern = re.compile(f"[{re.escape(self._chars)}\ud800-\udfff]")
        return self._pattern.sub(self._change, text)

    def _change(self, match: re.Match[str]) -> str:
        return self._changes[match[0]]


_NORMAL = WIDTH | SIMPLIFIED | UNIFIED | SUBSCRIPTS
_fold_width, _normalize, _fold_marks = Folding(WIDTH), Folding(_NORMAL), Folding(MARKS)


def fold_width(text: str) -> str:
    """Return `text` with full-width letters made half-width, rarer hyphens and middle dots replaced by the usual ones,
    and lone surrogates replaced by U+FFFD.

    The length never changes. Case is kept, because vectors and lexicons distinguish "IT" from "it". A lone surrogate
    is replaced because it cannot be encoded, so it cannot be matched, written to a file or printed.
    """
    return _fold_width(text)


def normalize(text: str) -> str:
    """Return `text` in the form in which vectors and lexicons are looked up.

    The text is normalised as by `fold_width`, and traditional characters are simplified, because vectors and lexicons
    come from simplified text. Radicals and compatibility ideographs become the characters that look the same, and
    subscripts become digits. Each character is mapped by itself, so the length never changes. A character that is also
    used in simplified text (乾 in 乾坤, 著 in 著名) stays as it is.
    """
    return _normalize(text)


def fold_marks(text: str) -> str:
    """Return normalised `text` in the form in which a user's words are looked up: Chinese brackets and other marks
    become the half-width ones, so that it does not matter which of them were typed. The length never changes."""
    return _fold_marks(text)


def without_invisible(text: str) -> str:
    """Return `text` without the characters that are left out when words are matched; itself if it has none."""
    return text if text.isprintable() else _INVISIBLE.sub("", text)  # such texts, nearly all, are known at once


def normalize_word(word: str) -> str:
    """Return a user's word in the form in which it is kept and looked up: normalised, with half-width marks and without
    invisible characters."""
    return without_invisible(_fold_marks(_normalize(word)))
