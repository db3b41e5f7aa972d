"""The figure of FLAT's positions in docs/figures/flat_positions.svg: a lattice, its flat form, and four distances.

python tests/docs/position_figure.py --write
"""

import sys
from pathlib import Path

from cige.drawing.lattice import BAR, BAR_EDGE, draw_lattice
from cige.drawing.svg import INK, SOFT, stacked, svg_page, svg_text
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import Lexicon

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "flat_positions.svg"
TEXT, WORDS = "重庆人和药店", ("重庆", "重庆人", "人和药店", "药店")
PAIR = ("重庆人", "人和药店")
COLOURS = ("#2563eb", "#b45309")
LEFT, CELL, WIDTH = 110.0, 62.0, 760.0


def lattice() -> Lattice:
    return build_lattice(TEXT, Lexicon.from_words(WORDS).snapshot())


def nodes() -> list[tuple[str, int, int]]:
    """The flat lattice: (text, head, tail) of each node, with inclusive tails as in the paper."""
    found = lattice()
    characters = [(char, i, i) for i, char in enumerate(found.text)]
    return characters + [(found.text[start:end], start, end - 1) for start, end, _ in found.words.tolist()]


def distances() -> dict[str, tuple[int, int]]:
    """hh, ht, th and tt -> (position of the first word of PAIR, position of the second)."""
    (first,), (second,) = ([node for node in nodes() if node[0] == word] for word in PAIR)
    places = {"h": 1, "t": 2}
    return {a + b: (first[places[a]], second[places[b]]) for a in "ht" for b in "ht"}


def flat_form() -> str:
    """A table: the nodes side by side, with head and tail under each."""
    parts, left = [], LEFT
    for name, y in (("node", 42), ("head", 78), ("tail", 106)):
        parts.append(svg_text(name, LEFT - 18, y, size=14, colour=SOFT, anchor="end"))
    for text, head, tail in nodes():
        width = 38.0 if len(text) == 1 else 18.0 * len(text) + 26
        parts.append(
            f'<rect x="{left:.0f}" y="18" width="{width - 6:.0f}" height="36" rx="6" fill="{BAR}" stroke="{BAR_EDGE}"/>'
        )
        middle = left + (width - 6) / 2
        parts.append(svg_text(text, middle, 42, size=17))
        parts += [svg_text(str(place), middle, y, size=15) for place, y in ((head, 78), (tail, 106))]
        left += width
    return svg_page(WIDTH, 124, "".join(parts), title="The flat lattice: a head and a tail for each node")


def four_distances() -> str:
    """Two words over the positions of their characters, and the four distances between their ends."""

    def middle(position: int) -> float:
        return LEFT + CELL * (position + 0.5)

    parts = [svg_text(char, middle(i), 46, size=22) for i, char in enumerate(TEXT)]
    parts += [svg_text(str(i), middle(i), 20, size=12, colour=SOFT) for i in range(len(TEXT))]
    ends = {word: (head, tail) for word, head, tail in nodes()}
    for row, (word, colour) in enumerate(zip(PAIR, COLOURS, strict=True)):
        head, tail = ends[word]
        top = 62 + 34 * row
        parts.append(
            f'<rect x="{middle(head) - 24:.0f}" y="{top}" width="{CELL * (tail - head) + 48:.0f}" height="26" rx="7" '
            f'fill="{colour}" fill-opacity="0.12" stroke="{colour}"/>'
        )
        parts.append(svg_text("ij"[row], LEFT - 18, top + 19, size=16, colour=colour, anchor="end", weight="600"))
        parts.append(svg_text(word, (middle(head) + middle(tail)) / 2, top + 19, size=16, colour=colour))
    for row, (name, (a, b)) in enumerate(distances().items()):
        y = 150 + 30 * row
        near, far = sorted((middle(a), middle(b)))
        parts.append(f'<path d="M{near:.0f} {y}H{far:.0f}" stroke="{INK}" stroke-width="1.5"/>')
        for place, colour in ((middle(a), COLOURS[0]), (middle(b), COLOURS[1])):
            parts.append(f'<circle cx="{place:.0f}" cy="{y}" r="4.5" fill="{colour}"/>')
        words = {"h": "head", "t": "tail"}
        formula = f"d({name}) = {words[name[0]]} i - {words[name[1]]} j = {a} - {b} = {a - b}"
        parts.append(svg_text(formula, LEFT + CELL * len(TEXT) + 14, y + 5, size=13, anchor="start"))
    return svg_page(WIDTH, 262, "".join(parts), title="The four distances between two words")


def figure() -> str:
    drawn = draw_lattice(lattice(), legend=False)
    return stacked([drawn, flat_form(), four_distances()], title="FLAT's positions")


if __name__ == "__main__":
    if "--write" in sys.argv:
        FIGURE.write_text(figure(), encoding="utf-8")
