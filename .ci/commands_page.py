"""The page of the site that shows what `cige VERB --help` prints, for every verb, in English or Chinese."""

from __future__ import annotations

import argparse
import io
import os

from cige.cli import VERBS, command_of
from cige.commands.chinese import chinese, translate

ENGLISH = (
    "# Command line",
    "This page has what `cige VERB --help` prints. A command ends with exit code 0 if it did what it was asked, 1 if "
    "`cige doctor` found something that does not work or an unexpected error occurred, 2 if something was wrong with "
    "what it was given (one line on standard error says what), 130 if it was interrupted with Ctrl-C, and 141 if the "
    "program that reads its output closed the pipe.",
)
CHINESE = (
    "# 命令行",
    "本页是 `cige VERB --help` 在中文环境下显示的内容（各命令的介绍和例子是英文的）。命令的退出码：0 表示完成；"
    "1 表示 `cige doctor` 发现有不正常的地方，或者发生了意外的错误；2 表示给出的内容有误，标准错误上有一行说明；"
    "130 表示被 Ctrl-C 中断；141 表示读取输出的程序关闭了管道。",
)


def commands_page(*, in_chinese: bool = False) -> str:
    """What `cige VERB --help` prints, for every verb."""
    parts = [*(CHINESE if in_chinese else ENGLISH)]
    listed = {verb: chinese(what) if in_chinese else what for verb, what in VERBS.items()}
    colon = "：" if in_chinese else ": "
    parts.append("\n".join(f"- [`cige {verb}`](#cige-{verb}){colon}{what}" for verb, what in listed.items()))
    for verb in VERBS:
        command = command_of(verb)
        parser = argparse.ArgumentParser(
            prog=f"cige {verb}", description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.add_arguments(parser)
        if in_chinese:
            translate(parser)
        parts.append(f"## cige {verb}\n\n```text\n{_help(parser)}```")
        for below in _below(parser):
            parts.append(f"### {below.prog}\n\n```text\n{_help(below)}```")
    return "\n\n".join(parts) + "\n"


def _below(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The parsers of `cige VERB WHAT`, and of what is below them."""
    own = [
        below
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for below in dict.fromkeys(action.choices.values())
    ]
    return [found for below in own for found in (below, *_below(below))]


def _help(parser: argparse.ArgumentParser) -> str:
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"  # as wide as a page, whatever the terminal of whoever builds the site
    try:
        shown = io.StringIO()
        parser.print_help(shown)
        return shown.getvalue()
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
