"""Show how much attention each lattice token of a text receives, before and after fine-tuning (Figure 4 of the paper).

Examples:
  cige lattice-bert pretrain explain --model runs/tiny/model "研究生活很充实"
  cige lattice-bert pretrain explain --model runs/tiny/model --tuned runs/ner --tuned runs/tnews "研究生活" -o page.html
"""

from __future__ import annotations

import argparse
import html
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.options import at_least, make_console
from cige.commands.texts import add_source_argument, whole_text_of
from cige.json_text import to_json

if TYPE_CHECKING:
    from cige.lattice_bert.encoder.attention import AttendedTokens

_STYLE = """
body { margin: 28px auto; max-width: 1040px; padding: 0 20px; color: #1f2937; background: #f8fafc;
  font: 16px/1.6 "Noto Sans CJK SC","Source Han Sans SC","PingFang SC","Microsoft YaHei",system-ui,sans-serif; }
h1 { font-size: 21px; } h2 { font-size: 16px; margin: 26px 0 6px; }
.soft { color: #64748b; font-size: 14px; }
.lattice { display: grid; gap: 4px; grid-auto-flow: row dense; background: #fff; border: 1px solid #e2e8f0;
  border-radius: 10px; padding: 14px; overflow-x: auto; }
.lattice span { border: 1px solid #cbd5e1; border-radius: 5px; text-align: center; white-space: pre; padding: 2px; }
.lattice small { display: block; font-size: 10px; color: #475569; }
""".strip()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_argument(parser, "the text to read")
    parser.add_argument("--model", "-m", required=True, metavar="M", help="a pre-trained model: a folder or a hub id")
    parser.add_argument(
        "--tuned", action="append", default=[], metavar="M", help="a model fine-tuned from it (may be repeated)"
    )
    parser.add_argument("--output", "-o", metavar="FILE", help="write an HTML page")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--n-tokens", type=at_least(1), metavar="N", help="list the N most attended tokens (default: all)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    text = whole_text_of(args.source)
    from cige.lattice_bert.encoder.attention import attended_tokens, read_encoder

    models = {"before": read_encoder(args.model)}
    for number, path in enumerate(args.tuned, start=1):
        models["after" if len(args.tuned) == 1 else f"after {number}"] = read_encoder(path)
    attended = attended_tokens(models, text)
    if args.output:
        from cige.folders.atomic import atomic_file

        with atomic_file(args.output) as aside:
            aside.write_text(to_html(attended, [args.model, *args.tuned]), encoding="utf-8")
        print(f"wrote {args.output}")
    elif args.json:
        print(to_json(attended.to_dict()))
    else:
        _print(attended, args.n_tokens)


def to_html(attended: AttendedTokens, sources: list[str]) -> str:
    """One page with the lattice of each model; the deeper the colour of a token, the more attention it receives."""
    parts = []
    for name, source, shares in zip(attended.names, sources, attended.shares.tolist(), strict=True):
        most, cells = max(shares), []
        for (start, end, token), share in zip(attended.tokens, shares, strict=True):
            strength = round(0.75 * share / most, 3)
            cells.append(
                f'<span style="grid-column:{start + 1}/{end + 1};background:rgba(37,99,235,{strength})" '
                f'title="{html.escape(token)} [{start}, {end})">{html.escape(token)}<small>{share:.1%}</small></span>'
            )
        columns = f"grid-template-columns:repeat({len(attended.lattice.text)},minmax(44px,1fr))"
        where = html.escape(Path(source).name if len(sources) == 1 else source)
        parts.append(f'<h2>{html.escape(name)} <span class="soft">{where}</span></h2>')
        parts.append(f'<div class="lattice" style="{columns}">{"".join(cells)}</div>')
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>cige</title><style>{_STYLE}</style>'
        "<h1>词格 · attention that each lattice token gets</h1>"
        '<p class="soft">Over all layers, heads and tokens that attend; with [CLS] and [SEP] a model\'s shares sum to '
        f"100%.</p>{''.join(parts)}</html>\n"
    )


def _print(attended: AttendedTokens, n_tokens: int | None) -> None:
    """Print the tokens in descending order of the last model's attention."""
    from rich.table import Table

    from cige.text.visible import visible

    table = Table("token")
    for name in ("place", *attended.names):
        table.add_column(name, justify="right")
    for row in (-attended.shares[-1]).argsort(kind="stable")[:n_tokens].tolist():
        start, end, token = attended.tokens[row]
        table.add_row(visible(token), f"[{start}, {end})", *(f"{share:.1%}" for share in attended.shares[:, row]))
    special = 1 - attended.shares.sum(1)
    table.add_section()
    table.add_row("[CLS] and [SEP]", "", *(f"{share:.1%}" for share in special))
    make_console().print(table)
