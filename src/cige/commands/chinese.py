"""Chinese help of the command line, for a Chinese locale; `chinese.json` translates verbs, descriptions and options."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

from cige.extensions import extensions

HEADINGS = {"usage: ": "用法：", "positional arguments": "参数", "options": "选项"}

EXAMPLES = "示例："
DESCRIPTION_COLUMNS = 118  # as wide as the English descriptions

_FILES = (Path(__file__).with_suffix(".json"), *(added.chinese for added in extensions()))
_SECTIONS = [section for file in _FILES for section in json.loads(file.read_text(encoding="utf-8")).values()]
TRANSLATIONS: dict[str, str] = {text: shown for section in _SECTIONS for text, shown in section.items()}
"""The English text of a verb, a paragraph or the help of an option, and what is shown instead; extensions come last."""
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
_UNBROKEN = re.compile(
    r" +|[（《“]*(?:[^ \u2018-\u201d\u3000-\u9fff\uff00-\uffef]+|.)[，。、；：？！）》”]*", re.DOTALL
)
"""A word in Latin letters, or a Chinese character with the marks that may not be parted from it."""


def is_wanted() -> bool:
    """Whether the locale of messages is Chinese: the first of the variables that is set decides."""
    locale = next((value for name in _VARIABLES if (value := os.environ.get(name))), "")
    return locale.lower().startswith("zh")


def chinese(text: str) -> str:
    """The translation of a text, or the text itself."""
    return TRANSLATIONS.get(text, text)


def description_of(what: str, description: str) -> str:
    """The description of a verb: what it does, and what follows in the English one, with its examples.

    Args:
        what: the English text that lists of verbs have, which takes the place of the first paragraph.
        description: paragraphs, of which those without a translation remain as they are.
    """
    paragraphs = [chinese(what)]
    for paragraph in description.strip().split("\n\n")[1:]:
        shown = chinese(as_one_line(paragraph))
        if shown == as_one_line(paragraph):  # examples, and what is for few readers
            paragraphs.append(re.sub(r"\AExamples:", EXAMPLES, paragraph))
        else:
            paragraphs.append(shown if "\n" in shown else "\n".join(lines_of(shown, DESCRIPTION_COLUMNS)))
    return "\n\n".join(paragraphs) + "\n"


def as_one_line(text: str) -> str:
    """The text without its line breaks, by which a paragraph is found."""
    return " ".join(text.split())


def lines_of(text: str, n_columns: int) -> list[str]:
    """The lines of a text on a terminal, where a Chinese character takes two columns and may be followed by a break."""
    from rich.cells import cell_len

    lines = [""]
    for part in _UNBROKEN.findall(" ".join(text.split())):
        if lines[-1] and cell_len(lines[-1] + part.rstrip()) > n_columns:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return [line.rstrip() for line in lines]


class ChineseHelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formats help with Chinese headings, and breaks its lines as Chinese text is broken."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return lines_of(text, width)

    def format_help(self) -> str:
        return re.sub(rf"^({'|'.join(HEADINGS.values())}):$", r"\1：", super().format_help(), flags=re.MULTILINE)

    def add_usage(self, usage, actions, groups, prefix=None):  # type: ignore[no-untyped-def]
        super().add_usage(usage, actions, groups, HEADINGS["usage: "] if prefix is None else prefix)


def translate(parser: argparse.ArgumentParser) -> None:
    """Show the help of a parser, and of those below it, in Chinese where there is a translation."""
    parser.formatter_class = ChineseHelpFormatter
    for group in parser._action_groups:
        group.title = HEADINGS.get(group.title or "", group.title)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for listed in action._choices_actions:
                listed.help = chinese(listed.help or "")
            for below in dict.fromkeys(action.choices.values()):
                translate(below)
        elif action.help:
            action.help = chinese(action.help)
