"""The help of the command line in Chinese."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len

from cige.cli import INTRODUCTION, SEE, VERBS, command_of, main, parser_of
from cige.commands.chinese import TRANSLATIONS, as_one_line, is_wanted, lines_of

CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def no_locale(monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


def helps(parser: argparse.ArgumentParser) -> set[str]:
    """The help texts of a parser and of those below it."""
    found = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {listed.help for listed in action._choices_actions}
            for below in action.choices.values():
                found |= helps(below)
        elif action.help:
            found.add(action.help)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_chinese_description(verb):
    assert CHINESE.search(TRANSLATIONS[VERBS[verb]])


def test_every_translation_is_of_a_text_that_is_shown():
    shown = set(VERBS.values()).union(*(helps(parser_of(verb)) for verb in VERBS))
    shown |= {"print the version", as_one_line(INTRODUCTION), SEE}
    shown |= {as_one_line(text) for verb in VERBS for text in (command_of(verb).__doc__ or "").split("\n\n")[1:]}
    assert not TRANSLATIONS.keys() - shown
    assert all(CHINESE.search(text) for text in TRANSLATIONS.values())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_CN"}, True),
        ({"LANG": "ZH_TW.UTF-8"}, True),
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, True),
    ],
)
def test_the_locale_of_messages_decides(monkeypatch, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_wanted() is expected


def test_help_is_in_chinese(monkeypatch, capsys):
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert main([]) == 0
    out = capsys.readouterr().out
    assert (
        "用法：cige VERB" in out
        and "选项：" in out
        and "选项:" not in out
        and "显示这份帮助并退出" in out
        and "usage" not in out
    )
    for verb, what in VERBS.items():
        assert re.search(rf"^  {verb} +{re.escape(TRANSLATIONS[what])}$", out, re.M)
    monkeypatch.setenv("LANG", "C")
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "usage: cige VERB" in out and all(what in out for what in VERBS.values())


@pytest.mark.parametrize("verb", ["predict", "lexicon", "train"])
def test_help_of_a_verb_is_in_chinese(monkeypatch, capsys, verb):
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0
    assert f"用法：cige {verb}" in out and TRANSLATIONS[VERBS[verb]] in out and f"cige {verb} " in out
    if verb == "predict":
        assert "只报告这些标签" in out and "不报告分数低于此值的实体" in out
    if verb == "lexicon":
        assert "把词表转换成可以立刻载入的文件夹" in out
        with pytest.raises(SystemExit):
            main([verb, "build", "--help"])
        assert "显示这份帮助并退出" in capsys.readouterr().out


IN_ENGLISH = ("compare", "leaderboard", "lattice-bert")  # whose descriptions are of measurements and papers


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in IN_ENGLISH])
def test_every_paragraph_of_a_description_is_in_chinese(monkeypatch, verb):
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    description = parser_of(verb).description
    assert description.startswith(TRANSLATIONS[VERBS[verb]] + "\n")
    texts = [part for part in description.strip().split("\n\n") if not part.startswith(("  ", "示例："))]
    assert all(CHINESE.search(text.splitlines()[0]) for text in texts)
    examples = [line for line in (command_of(verb).__doc__ or "").splitlines() if line.startswith("  cige ")]
    assert not set(examples) - set(description.splitlines())
    assert all(cell_len(line) <= 120 for line in description.splitlines())


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_described_in_chinese(verb):
    assert not helps(parser_of(verb)) - TRANSLATIONS.keys()


@pytest.mark.parametrize("n_columns", [24, 40, 54])
def test_lines_fit_the_terminal_and_break_no_word(n_columns):
    for text in TRANSLATIONS.values():
        lines = lines_of(text, n_columns)
        assert all(cell_len(line) <= n_columns or " " not in line for line in lines)
        assert "".join("".join(lines).split()) == "".join(text.split())
        assert not any(line[0] in "，。、；：）》”" or line[-1] in "（《“" for line in lines)
    assert lines_of("含 word、label 和 mode（evidence、type）的 CSV", 24) == [
        "含 word、label 和 mode",
        "（evidence、type）的 CSV",
    ]


def test_options_mean_the_same_in_every_locale(monkeypatch):
    english = parser_of("predict").parse_args(["北京", "--labels", "LOC", "--min-score", "0.5"])
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    chinese = parser_of("predict").parse_args(["北京", "--labels", "LOC", "--min-score", "0.5"])
    assert vars(english).keys() == vars(chinese).keys()
    plain = [name for name, value in vars(english).items() if not callable(value)]
    assert all(vars(english)[name] == vars(chinese)[name] for name in plain)


def test_the_help_is_printed_by_the_program():
    environment = {**os.environ, "LANG": "zh_CN.UTF-8", "LC_ALL": "", "LC_MESSAGES": ""}
    done = subprocess.run(
        [sys.executable, "-m", "cige", "--help"], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    assert "找出一段文本" in done.stdout
