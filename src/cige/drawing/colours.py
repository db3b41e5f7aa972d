"""The colour of each entity type, which is the same in all drawings and on all pages."""

from __future__ import annotations

# White letters can be read on all of these (a contrast of 4.5 or more).
PALETTE = ("#2563eb", "#047857", "#b45309", "#9333ea", "#be185d", "#0e7490", "#dc2626", "#4d7c0f", "#7c2d12", "#475569")
# Subtypes have shades of the colour of their parent.
LABEL_COLOURS = {
    "PER": "#b45309",
    "LOC": "#047857",
    "SCENE": "#4d7c0f",
    "GPE": "#0f766e",
    "ORG": "#2563eb",
    "COMPANY": "#1d4ed8",
    "GOVERNMENT": "#4338ca",
    "TIME": "#475569",
    "POSITION": "#7c2d12",
    "PRODUCT": "#be185d",
    "BOOK": "#9333ea",
    "MOVIE": "#7e22ce",
    "GAME": "#a21caf",
}


def colour_of(label: str) -> str:
    """The colour of a label as "#rrggbb"; for labels that are not listed, it depends only on the letters."""
    listed = LABEL_COLOURS.get(label)
    if listed is not None:
        return listed
    number = 0
    for char in label:
        number = (31 * number + ord(char)) % 1_000_003
    return PALETTE[number % len(PALETTE)]
