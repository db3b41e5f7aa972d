"""The pages tell the truth: their Python runs, their commands parse, and every source file is described."""

import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest
from source_list import PAGE, expected

from cige import load
from cige.cli import VERBS, command_of
from cige.commands.parser import VerbParser

ROOT = Path(__file__).resolve().parents[2]
GUIDES = [
    "tutorial",
    "reading",
    "systems",
    "lattice_bert",
    "integrations",
    "command_line",
    "bulk",
    "documents",
    "serving",
]
PAGES = ["README.md", "README.zh.md"]
PAGES += [f"docs/{name}{language}.md" for name in GUIDES for language in ("", ".zh")]
MEASUREMENTS = [f"docs/{name}{language}.md" for name in ("results", "speed", "speed_parts") for language in ("", ".zh")]
MEASUREMENTS += sorted(f"docs/archive/{page.name}" for page in (ROOT / "docs" / "archive").glob("*.md"))
WITHOUT_PYTHON = {f"docs/{name}{language}.md" for name in ("command_line", "systems") for language in ("", ".zh")}


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in WITHOUT_PYTHON])
def test_python_blocks_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    found = blocks(page, "python")
    assert found
    for block in found:
        exec(compile(block, page, "exec"), names)


def commands() -> list[str]:
    joined = [block.replace("\\\n", " ") for page in [*PAGES, *MEASUREMENTS] for block in blocks(page, "sh")]
    lines = [line for block in joined for line in block.splitlines()]
    return sorted({line.partition("#")[0].strip() for line in lines if line.startswith("cige ")})


@pytest.mark.parametrize("command", commands())
def test_commands_parse(command):
    _, verb, *arguments = shlex.split(command.partition(" > ")[0])
    assert verb in VERBS
    parser = VerbParser(exit_on_error=False)
    command_of(verb).add_arguments(parser)
    parser.parse_args(arguments)


def test_every_source_file_is_described():
    page = PAGE.read_text(encoding="utf-8")
    assert page == expected(page), "run: python tests/docs/source_list.py --write"


def test_links_of_the_pages_lead_somewhere():
    for page in [*PAGES, *MEASUREMENTS]:
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert "://" in target or ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_rows_of_a_table_have_as_many_cells_as_its_header():
    """GitHub shows text with bars in place of a table whose header and delimiter row differ."""
    pages = [
        *ROOT.glob("*.md"),
        *(page for folder in ("docs", "src", ".github") for page in (ROOT / folder).rglob("*.md")),
    ]
    n_tables = 0
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        lines = [line.strip() for line in text.splitlines()]
        for number, line in enumerate(lines):
            if re.fullmatch(r"\|( *:?-+:? *\|)+", line):
                table = takewhile(lambda row: row.startswith("|"), lines[number - 1 :])
                assert {n_cells(row) for row in table} == {n_cells(line)}, f"{page}: {lines[number - 1]}"
                n_tables += 1
    assert n_tables > 100


def n_cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row.strip())) - 1


def test_chinese_pages_lead_to_chinese_pages():
    """Wherever there are any; only the link under the title leads to the same page in English."""
    for page in [ROOT / "README.zh.md", *(ROOT / "docs").rglob("*.zh.md")]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"(?<!\[English)\]\(([^)#:]+)[.]md", text):
            assert target.endswith(".zh") or not (page.parent / f"{target}.zh.md").exists(), f"{page}: {target}.md"


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_first_example_prints_what_the_page_says(page, capsys):
    (block,) = blocks(page, "python")
    exec(compile(block, page, "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)", block, re.MULTILINE)


def test_both_readmes_have_the_same_shape():
    """The same sections, commands, links and figures, in the same order."""
    pages = ("README.md", "README.zh.md")
    english, chinese = ((ROOT / page).read_text(encoding="utf-8") for page in pages)
    chinese = chinese.replace(".zh.md", ".md")
    for pattern in (r"^(#+) ", r"\]\((?!README)([^)#]+)", r"[0-9]+\.[0-9]+"):
        assert re.findall(pattern, english, re.MULTILINE) == re.findall(pattern, chinese, re.MULTILINE), pattern
    typed = [
        [line.partition("#")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
        for page in pages
    ]
    assert typed[0] == typed[1]


def test_the_drawn_lattice_is_what_the_readme_says():
    ner = load()
    text = "昨天阿拉善贺兰草宣布了新的计划。"
    found = [(entity.text, entity.label) for entity in ner(text)]
    ner.lexicon.add("阿拉善贺兰草", label="COMPANY")
    with_word = [(entity.text, entity.label) for entity in ner(text)]
    assert found == [("昨天", "TIME"), ("阿拉善贺兰", "LOC")]
    assert with_word == [("昨天", "TIME"), ("阿拉善贺兰草", "COMPANY")]
    drawn = re.findall(r"<text[^>]*>([^<]*)", (ROOT / "docs/lattice.svg").read_text(encoding="utf-8"))
    shown = [label for label in drawn if re.match("[A-Z]+( 0|$)", label)]  # the score is left out where it does not fit
    for entity in ner(text):
        assert f"{entity.label} {entity.score:.2f}" in shown or entity.label in shown
    assert any(re.search("0[.]", label) for label in shown)
    assert {"阿拉善贺兰草", "your own word"} <= {text.split(",")[0].split(":")[0] for text in drawn}
