"""Explanation: the result of explaining a text, with methods that show it in a terminal, a drawing or an HTML page."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cige.drawing.colours import colour_of
from cige.drawing.highlight import highlighted
from cige.drawing.lattice import Emphasis, Mark, draw_lattice
from cige.drawing.svg import escape, stacked
from cige.entities.entity import Entity
from cige.errors import CigeError
from cige.explain.evidence import AttendedWord, Change, EntityEvidence, Evidence
from cige.explain.maps import TerminalMap, draw_map
from cige.explain.sets import draw_sets, html_table, terminal_table
from cige.folders.atomic import write_atomically
from cige.lexicon.user_word import FORCE
from cige.tagging.windows import LatticeWord
from cige.text.counted import counted
from cige.text.visible import visible


class Explanation(Evidence):
    """The result of `NER.explain`: `Evidence` with methods that show it."""

    def to_terminal(self) -> RenderableType:
        """Tables for a terminal: `rich.print(explanation.to_terminal())`."""
        parts: list[RenderableType] = [_lattice_table(self), _entity_table(self)]
        if self.word_sets:
            parts.append(terminal_table(self.word_sets))
        parts += [TerminalMap(drawn) for drawn in self.maps or ()]
        if self.n_tried:
            parts.append(_removal_table(self) if self.removals else Text(""))
            parts.append(Text(_removal_summary(self), style="dim"))
        if self.lattice.n_dropped:
            parts.append(Text(_dropped(self), style="red"))
        return Group(*parts)

    def to_svg(self) -> str:
        """One SVG file: the lattice with attention as the depth of colours, then word sets and maps, if any."""
        marks, pages = to_marks(self), [draw_evidence(self)]
        if self.word_sets:
            pages.append(draw_sets(self.word_sets, marks))
        pages += [draw_map(drawn, marks) for drawn in self.maps or ()]
        return stacked(pages, title=self.text[:80])

    def to_html(self) -> str:
        """One self-contained HTML page: the drawings, the entities with their words, and what changes."""
        n_words, n_user = self.lattice.n_words, int(self.lattice.is_user.sum())
        user_words = f", {n_user} of them your own" if n_user else ""
        n_entities = counted(len(self.entities), "entity", "entities")
        facts = f"{counted(len(self.text), 'character')}, {counted(n_words, 'lattice word')}{user_words}, {n_entities}"
        dropped = f'<p class="soft gone">{escape(_dropped(self))}</p>' if self.lattice.n_dropped else ""
        style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8").strip()
        sections = [
            f'<h1>词格 · how this text was read</h1><p class="soft">{facts}</p>{dropped}',
            f'<div class="card text">{highlighted(self.text, to_marks(self))}</div>',
            '<h2>Lattice</h2><p class="soft">Words over the characters. The deeper the colour of a word, the more '
            "attention the characters of an entity pay to it. Hover over a word for figures.</p>"
            '<div class="card drawing" tabindex="0" role="region" aria-label="Lattice">'
            f"{draw_evidence(self)}</div>",
            _html_entities(self),
            html_table(self.word_sets, to_marks(self)) if self.word_sets else "",
            _html_maps(self),
            _html_removals(self),
        ]
        return (
            '<!DOCTYPE html>\n<html lang="zh"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>词格 · {escape(self.text[:40])}</title><style>{style}</style></head>\n"
            f"<body><main>{''.join(sections)}</main></body></html>\n"
        )

    def _repr_html_(self) -> str:
        """The HTML that a notebook displays: the drawing of the lattice."""
        return self.to_svg()

    def save(self, path: str | PathLike[str]) -> None:
        """Write an HTML page, or only the drawing if `path` ends in .svg or .png, completely or not at all.

        Raises:
            CigeError: `path` has another extension, or it ends in .png and no installed font has the characters of
                the text.
        """
        kind = Path(path).suffix.lower()
        if kind == ".png":
            from cige.drawing.png import save_png

            save_png(self.to_svg(), path)
            return
        if kind not in (".html", ".htm", ".svg"):
            raise CigeError(f"{path}: ends in {kind or 'nothing'!r}; expected .html, .svg or .png")
        content = self.to_svg() if kind == ".svg" else self.to_html()
        write_atomically(Path(path), content)


def draw_evidence(evidence: Evidence, *, width: int = 1000, legend: bool = True) -> str:
    """The lattice as SVG, with the entities and the attention to words; `width` and `legend` as in `draw_lattice`."""
    marks, emphasis = to_marks(evidence), to_emphasis(evidence)
    return draw_lattice(
        evidence.lattice, text=evidence.text, marks=marks, emphasis=emphasis, width=width, legend=legend
    )


def to_marks(explanation: Evidence) -> list[Mark]:
    return [Mark(e.start, e.end, e.label, _score(e, 2)) for e in (x.entity for x in explanation.entities)]


def to_emphasis(explanation: Evidence) -> dict[int, Emphasis]:
    """Give each attended word the colour of the entity that attends to it most."""
    rows = {(word.start, word.end, word.is_user): k for k, word in enumerate(explanation.words)}
    strongest: dict[int, tuple[float, EntityEvidence]] = {}
    for evidence in explanation.entities:
        for attended in evidence.words:
            word = attended.word
            k = rows.get((word.start, word.end, word.is_user))
            if k is not None and attended.share > strongest.get(k, (0.0, evidence))[0]:
                strongest[k] = (attended.share, evidence)
    return {
        k: Emphasis(share, evidence.entity.label, f"{share:.0%} of the attention of {evidence.entity.text} to words")
        for k, (share, evidence) in strongest.items()
    }


# ---- terminal


def _lattice_table(explanation: Evidence) -> Table:
    """A table of words by the character at which they start, like the lattice from left to right."""
    table = Table(title="lattice", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("from", justify="right", style="dim")
    table.add_column("characters", overflow="fold")
    table.add_column("words that start here (* your own, with its label; ! forced)", overflow="fold")
    text = explanation.lattice.text
    by_start: dict[int, list[str]] = {}
    for word in explanation.words:
        by_start.setdefault(word.start, []).append(word.shown())
    starts = sorted({0, *by_start})
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        if text[start:stop].strip():
            written = visible(explanation.text[start:stop])
            table.add_row(str(start), Text(written), Text("  ".join(by_start.get(start, []))))
    return table


def _entity_table(explanation: Evidence) -> RenderableType:
    if not explanation.entities:
        return Text("(no entity)", style="dim")
    table = Table(title="entities", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("entity", "label", "offsets", "score", "attention to words", "of which"):
        table.add_column(name, style="bold" if name == "entity" else "", overflow="fold")
    for evidence in explanation.entities:
        e = evidence.entity
        words = Text("  ".join(f"{w.word.shown()}\xa0{w.share:.0%}" for w in evidence.words))
        table.add_row(
            Text(visible(e.text)), e.label, e.shown_offsets(), _score(e, 3), f"{evidence.on_words:.0%}", words
        )
    return table


def _removal_table(explanation: Evidence) -> Table:
    table = Table(title="what changes without a word", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("without", "offsets", "change"):
        table.add_column(name, style="bold" if name == "without" else "", overflow="fold")
    for removal in explanation.removals:
        word = removal.word
        changes = Text("\n".join(_change(change) for change in removal.changes))
        table.add_row(Text(word.shown()), f"{word.start}-{word.end}", changes)
    return table


def _score(entity: Entity, digits: int) -> str:
    return "forced" if entity.forced else f"{entity.score:.{digits}f}"


def _named(entity: Entity) -> str:
    return f"{visible(entity.text)} {entity.label}"


def _change(change: Change) -> str:
    name, score = _named(change.entity), f"{change.entity.score:.2f}"
    if change.before is None:
        return f"{name} appears, {score}"
    if change.after is None:
        return f"{name} {score} → gone"
    return f"{name} {score} → {change.after.score:.2f}"


def _removal_summary(explanation: Evidence) -> str:
    n_quiet = explanation.n_tried - len(explanation.removals)
    tried = counted(explanation.n_tried, "word over entities was", "words over entities were")
    return f"{tried} removed, one at a time; {n_quiet:,} changed nothing."


def _dropped(explanation: Evidence) -> str:
    n_dropped = explanation.lattice.n_dropped
    were = "was" if n_dropped == 1 else "were"
    return f"{counted(n_dropped, 'more word')} matched but exceeded the node budget and {were} not read."


# ---- HTML


def _html_entities(explanation: Evidence) -> str:
    if not explanation.entities:
        return '<h2>Entities</h2><div class="card soft">none</div>'
    rows = []
    for evidence in explanation.entities:
        e = evidence.entity
        rows.append(
            f'<tr><td>{escape(e.text)}</td><td>{_tag(e.label)}</td><td class="n">{e.start}–{e.end}</td>'
            f'<td class="n">{_score(e, 3)}</td><td class="n">{evidence.on_words:.0%}</td>'
            f"<td>{''.join(_html_attended(e.label, w) for w in evidence.words)}</td></tr>"
        )
    names = ("entity", "type", "offsets", "score", "attention to words", "of which")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f'<h2>Entities</h2><div class="card"><table class="entities"><tr>{head}</tr>{"".join(rows)}</table></div>'


def _html_attended(label: str, attended: AttendedWord) -> str:
    depth = f"{round(255 * (0.05 + 0.45 * attended.share)):02x}"
    style = f' style="background:{colour_of(label)}{depth}"'
    return _html_word(attended.word, style, f"<small>{attended.share:.0%}</small>")


def _html_word(word: LatticeWord, style: str = "", extra: str = "") -> str:
    kind = "word user" if word.is_user else "word"
    title = f"[{word.start}, {word.end})" + (", your own word" if word.is_user else "")
    title += ", forced" if word.mode == FORCE else ""
    label = f"<small>{escape(word.label)}</small>" if word.label else ""
    return f'<span class="{kind}"{style} title="{title}">{escape(word.text)}{label}{extra}</span>'


def _html_maps(explanation: Evidence) -> str:
    if not explanation.maps:
        return ""
    drawings = "".join(
        f'<div class="card drawing">{draw_map(m, to_marks(explanation))}</div>' for m in explanation.maps
    )
    return (
        '<h2>Attention</h2><p class="soft">The deeper the colour of a cell, the larger its share of the attention of '
        f"its row. Hover over a cell for figures.</p>{drawings}"
    )


def _html_removals(explanation: Evidence) -> str:
    if not explanation.n_tried:
        return ""
    rows = "".join(
        f'<tr><td>{_html_word(r.word)}</td><td class="n">{r.word.start}–{r.word.end}</td>'
        f"<td>{'<br>'.join(_html_change(c) for c in r.changes)}</td></tr>"
        for r in explanation.removals
    )
    table = f'<div class="card"><table><tr><th>without</th><th>offsets</th><th>change</th></tr>{rows}</table></div>'
    return (
        f'<h2>What changes without a word</h2><p class="soft">{_removal_summary(explanation)}</p>'
        f"{table if explanation.removals else ''}"
    )


def _html_change(change: Change) -> str:
    name, score = f"{escape(change.entity.text)} {_tag(change.entity.label)}", f"{change.entity.score:.2f}"
    if change.before is None:
        return f'{name} <span class="new">appears, {score}</span>'
    if change.after is None:
        return f'{name} {score} → <span class="gone">gone</span>'
    return f"{name} {score} → {change.after.score:.2f}"


def _tag(label: str) -> str:
    return f'<span class="tag" style="background:{colour_of(label)}">{escape(label)}</span>'
