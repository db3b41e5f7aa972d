"""Parts of SVG drawings: pages, stacked pages, and lines of text that are escaped and scaled to fit."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence

from cige.text.visible import visible

FONT = "'Noto Sans CJK SC','Source Han Sans SC','PingFang SC','Microsoft YaHei',sans-serif"
INK, SOFT = "#1f2937", "#64748b"
NARROW_SHARE = 0.58  # width of a Latin character as a share of the font size
_SIZE = re.compile(r' width="([0-9]+)" height="([0-9]+)"')


def svg_page(width: float, height: float, elements: str, *, title: str) -> str:
    """One self-contained SVG file: `elements` on a white background."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="{FONT}" role="img">'
        f"<title>{escape(title)}</title>"
        f'<rect width="100%" height="100%" rx="10" fill="#ffffff"/>{elements}</svg>\n'
    )


def stacked(pages: Sequence[str], *, title: str) -> str:
    """Stack pages that `svg_page` made vertically in one file."""
    if len(pages) == 1:
        return pages[0]
    parts, top, width = [], 0, 0
    for page in pages:
        size = _SIZE.search(page)
        assert size is not None
        parts.append(page.replace("<svg ", f'<svg y="{top}" ', 1).rstrip())
        top, width = top + int(size[2]), max(width, int(size[1]))
    return svg_page(width, top, "".join(parts), title=title)


def svg_text(
    text: str,
    x: float,
    y: float,
    *,
    size: float,
    colour: str = INK,
    anchor: str = "middle",
    room: float | None = None,
    weight: str = "400",
) -> str:
    """A line of text, scaled down if it would not fit into `room` pixels."""
    if room is not None and (needed := text_width(text, size)) > room > 0:
        size = max(4.0, size * room / needed)
    bold = "" if weight == "400" else f' font-weight="{weight}"'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.4g}" text-anchor="{anchor}" fill="{colour}"{bold} '
        f'xml:space="preserve">{escape(text)}</text>'
    )


def text_width(text: str, size: float) -> float:
    """The approximate width of a line in pixels."""
    return size * sum(1.0 if is_wide(char) else NARROW_SHARE for char in text)


def is_wide(char: str) -> bool:
    """Whether a character is as wide as a Chinese one; controls count as wide, because their placeholders may be."""
    return unicodedata.east_asian_width(char) in "WFA" or unicodedata.category(char)[0] == "C"


def escape(text: str) -> str:
    """Escape text for XML and HTML, in elements and in attributes."""
    return html.escape(visible(text))
