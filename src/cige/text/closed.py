"""Closed stretches: the parts of a text that contain no names, such as URLs, code, emoji and most whitespace."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache

from cige.text.cells import closed_whitespace, is_unbroken
from cige.text.normalize import WIDTH, fold_width

Stretch = tuple[int, int]  # [start, end) in code points

_ADDRESS_CHAR = r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%|]"
_ADDRESS_END = r"[A-Za-z0-9/=&_~%+\-]"  # a full stop or bracket after an address belongs to the sentence
_CHINESE_PART = r"(?<=[/=])[\u3400-\u9fff]+"  # /wiki/北京; after other characters, the sentence continues
_LABEL = r"[A-Za-z0-9-]{1,63}"
_ATTRIBUTES = r"""(?:"[^"<>\n]*"|'[^'<>\n]*'|[^<>\n"']){0,400}"""
_EMOJI = "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff\u200d\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f"
PATTERNS = (
    r"```.*?```",  # code, fenced off
    r"`[^`\n]+`",
    rf"(?:https?|ftp|file)://(?:{_ADDRESS_CHAR}|{_CHINESE_PART})*(?:{_ADDRESS_END}|{_CHINESE_PART})",
    rf"(?<![A-Za-z0-9.-])www\.{_ADDRESS_CHAR}*{_ADDRESS_END}",
    rf"(?<![A-Za-z0-9.@-])(?:{_LABEL}\.){{1,4}}[a-z]{{2,6}}/{_ADDRESS_CHAR}*{_ADDRESS_END}",  # t.cn/zQaVuHD
    rf"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{{1,64}}@{_LABEL}(?:\.{_LABEL})+",  # mail
    r"<!--.{0,1000}?-->",
    r"<!(?:DOCTYPE|doctype)[^<>]{0,300}>",
    # HTML and XML; what is in quotation marks may be long, such as an image in base64.
    rf"</?[a-z][a-z0-9]{{0,20}}(?:\s+[A-Za-z:-]{{1,40}}\s*=(?:[^<>\n]{{0,400}}|{_ATTRIBUTES}))?\s*/?>",
    # References to characters that are in no name, unlike &amp; and &middot;; whatever has a number.
    r"&(?:#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6}|nbsp|e[nm]sp|thinsp|lt|gt|quot|[lr][sd]quo|[mn]dash|hellip|bull|copy|reg|trade);",
    r"(?<![A-Za-z])data:[a-z]{1,20}/[a-z0-9.+-]{1,60};base64,[A-Za-z0-9+/%]*={0,2}",
    r"(?<![A-Za-z0-9_])[a-z][a-z0-9]{0,63}(?:_[a-z0-9]{1,63}){1,16}(?![A-Za-z0-9_])",  # snake_case
    r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]{0,63}(?:_[A-Z0-9]{1,63}){1,16}(?![A-Za-z0-9_])",
    r"(?<![A-Za-z0-9_.])[A-Za-z_][A-Za-z0-9_.]{0,127}\(\)",  # call()
    r"(?<![A-Za-z0-9/.:])(?:~|\.{1,2})?(?:/[A-Za-z0-9_.-]{2,64}){2,32}",  # /usr/bin
    r"(?<![A-Za-z0-9])[A-Za-z]:\\[A-Za-z0-9_.\\-]{1,256}",
    r"(?<![A-Za-z0-9._%+-])@(?=\w)|@(?=[^\W\x00-\x7f])",  # only the sign of an @mention; a name after it is a name
    # Emoji with modifiers and joiners, flags and keycaps. U+FFFD and private-use characters may replace an emoji, but
    # also a rare character of a name.
    "[0-9#*]\ufe0f?\u20e3",
    f"(?!\u200d)[{_EMOJI}]+",  # a joiner alone may be within a name
)
# Every match of the patterns contains one of these, half or full width, where w is that of www. Most texts have none,
# and are not searched. A single class of characters is found faster than alternatives are.
_SIGNS = "`/@<&_(\\w"  # none has a meaning in a class of JavaScript's, but for the backslash
_WIDE_SIGNS = "".join(wide for wide, half in WIDTH.items() if half in _SIGNS)
SIGN = re.compile(f"[{_SIGNS.replace(chr(92), chr(92) * 2)}{_WIDE_SIGNS}{_EMOJI}]")


@cache
def _closed() -> re.Pattern[str]:
    return re.compile("|".join(PATTERNS), re.DOTALL)


def closed_stretches(text: str) -> list[Stretch]:
    """The parts of a text that entities cannot overlap; sorted, disjoint, in code points of `text`.

    Web and mail addresses, code (fenced, in backticks, tags, references such as &nbsp;, calls, paths and names with
    underscores), emoji, the sign of an @mention, and whitespace except single spaces within Latin text.
    """
    stretches = [match.span() for match in _closed().finditer(fold_width(text))] if SIGN.search(text) else []
    if not is_unbroken(text):
        stretches += closed_whitespace(text)
    return united(stretches) if stretches else []


def within(stretches: Sequence[Stretch], start: int, end: int) -> list[Stretch]:
    """The parts of sorted disjoint stretches within [start, end), with offsets from `start`."""
    if not stretches:
        return []
    first = bisect_right(stretches, start, key=lambda stretch: stretch[1])
    last = bisect_left(stretches, end, key=lambda stretch: stretch[0])
    return [(max(a, start) - start, min(b, end) - start) for a, b in stretches[first:last]]


def united(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same stretches sorted, those that overlap or touch as one."""
    united: list[Stretch] = []
    for start, end in sorted(stretches):
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((start, end))
    return united
