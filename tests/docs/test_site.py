"""The code of the documentation site and its notebooks runs, and Chinese pages have the same code."""

import re
from importlib import import_module
from itertools import pairwise

import nbformat
import notebook_outputs
import position_figure
import pytest
import yaml
from page_code import DOCS, ROOT, blocks, run_page, site_pages, twin, without_comments
from quantities import quantities

from cige.cli import VERBS

GUIDES = ("tutorial", "reading", "systems", "lattice_bert", "serving", "documents")
ARCHIVE = sorted(f"archive/{page.name}" for page in (DOCS / "archive").glob("*.md") if not page.name.endswith(".zh.md"))
MEASUREMENTS = ("results.md", "speed.md", "speed_parts.md", *ARCHIVE, "../src/cige/bundled/MODEL_CARD.md")


@pytest.mark.parametrize("page", site_pages())
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    assert run_page(text) == text, f"run: python tests/docs/page_code.py --write {page}"


@pytest.mark.parametrize("page", site_pages())
def test_the_chinese_page_has_the_same_code_and_leads_to_the_same_places(page):
    _compare(page, twin(page), r"^(#+) ", r"\]\(([^)#]+)")


def _compare(page: str, other: str, *patterns: str) -> None:
    """Two pages have the same code without its comments, and outside of it the same matches, in any order."""
    english, chinese = ((DOCS / name).read_text(encoding="utf-8") for name in (page, other))
    assert [without_comments(block) for block in blocks(chinese)] == [
        without_comments(block) for block in blocks(english)
    ]
    for pattern in patterns:
        assert _outside_blocks(pattern, chinese) == _outside_blocks(pattern, english), pattern


@pytest.mark.parametrize("page", GUIDES)
def test_the_chinese_guide_has_the_code_headings_links_and_figures_of_the_english_one(page):
    english, chinese = (f"{page}{language}.md" for language in ("", ".zh"))
    _compare(english, chinese, r"^(#+) ", r"\]\(([^)#]+)")
    numbers = [re.findall(r"[0-9]+\.[0-9]+", (DOCS / name).read_text(encoding="utf-8")) for name in (english, chinese)]
    assert sorted(numbers[0]) == sorted(numbers[1])


@pytest.mark.parametrize("page", MEASUREMENTS)
def test_the_chinese_measurements_are_those_of_the_english_page(page):
    """The same sections, code, tables, pictures and links in the same order, and the same quantities throughout."""
    english, chinese = ((DOCS / name).read_text(encoding="utf-8") for name in (page, twin(page)))
    _compare(page, twin(page))
    assert _skeleton(english) == _skeleton(chinese)
    assert quantities(english) == quantities(chinese)


def _skeleton(text: str) -> list[tuple[str, ...]]:
    """The headings (their depth), code, rows of tables (the quantities of each cell), pictures and links of a page."""
    found = []
    for line in re.sub(r"^```(\w+)\n.*?^```$", r"```\1", text, flags=re.M | re.S).splitlines():
        if line.startswith("|"):
            found.append(("row", *(" ".join(quantities(cell)) for cell in line.strip("|").split("|"))))
        elif head := re.match("#+ |```.*", line):
            found.append((head[0],))
    links = sorted(re.findall(r"(!?)\[[^\]]*\]\(([^)#]*)(#?)", text.replace(".zh.md", ".md")))
    return [*found, *links]


def _outside_blocks(pattern: str, text: str) -> list[str]:
    """What matches outside of code blocks; a link to a Chinese page counts as one to the English page."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S).replace(".zh.md", ".md")
    return sorted(re.findall(pattern, prose, re.MULTILINE))


@pytest.mark.parametrize("name", notebook_outputs.NOTEBOOKS)
def test_a_notebook_runs_and_shows_what_it_showed(name, tmp_path):
    """`python tests/docs/notebook_outputs.py --write` keeps new outputs.

    Scores differ in the second digit between processors (`precision="auto"`), and colours with them.
    """
    kept = notebook_outputs.read(name)
    nbformat.validate(kept)
    executed = notebook_outputs.executed(name, tmp_path)
    for cell, own in zip(executed.cells, kept.cells, strict=True):
        assert cell.source == own.source
        shown, expected = (_shown(x.get("outputs", [])) for x in (cell, own))
        assert re.sub(r"\d\.\d+", "0.0", shown) == re.sub(r"\d\.\d+", "0.0", expected)
        scores = [[float(x) for x in re.findall(r"\d\.\d+", text)] for text in (shown, expected)]
        assert scores[0] == pytest.approx(scores[1], abs=0.03)


def _shown(outputs: list) -> str:
    """The text of outputs, and of drawings."""
    parts = []
    for output in outputs:
        data = {"text/plain": output["text"]} if output["output_type"] == "stream" else output["data"]
        parts += re.findall(r">([^<>]+)</text>", data["image/svg+xml"]) if "image/svg+xml" in data else data.values()
    return "\n".join(parts)


def test_the_figure_of_positions_is_what_the_code_draws():
    assert position_figure.FIGURE.read_text(encoding="utf-8") == position_figure.figure()
    assert {name: a - b for name, (a, b) in position_figure.distances().items()} == {
        "hh": -2,
        "ht": -5,
        "th": 0,
        "tt": -3,
    }


def test_the_reference_of_ner_has_the_methods_that_it_inherits():
    """`ner(...)` and `ner.pipe(...)` are methods of a base class; the reference leaves those out that are not named."""
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    options = re.search(r"^::: cige\.NER\n    options:\n(      .*\n)+", page, re.M)
    assert options and "inherited_members: [__call__, pipe]" in options[0]


def test_every_page_of_the_menu_has_a_chinese_name():
    """Names that are the same in both languages are named too, so that a new page is not forgotten."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    (i18n,) = (plugin["i18n"] for plugin in settings["plugins"] if "i18n" in plugin)
    (chinese,) = (language for language in i18n["languages"] if language["locale"] == "zh")
    assert set(_names(settings["nav"])) == set(chinese["nav_translations"])


def _names(menu: list) -> list[str]:
    found = []
    for entry in menu:
        ((name, below),) = entry.items()
        found += [name, *(_names(below) if isinstance(below, list) else [])]
    return found


def test_no_line_of_a_chinese_page_is_broken_between_chinese_characters():
    """A browser shows such a break as a space."""
    wide, broken = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"), []
    for page in [*(ROOT / "docs").rglob("*.zh.md"), *(ROOT / "src").rglob("*.zh.md"), ROOT / "README.zh.md"]:
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for before, after in pairwise(prose.split("\n")):
            if before and after and wide.match(before[-1]) and wide.match(after.lstrip()[:1]):
                broken.append((page.name, before[-12:], after[:12]))
    assert broken == []


class TestQuantities:
    def test_scales_of_both_languages_are_the_same_numbers(self):
        assert quantities("29.3M and 28.5 million") == quantities("2,930 万和 2,850 万") == ["28500000", "29300000"]
        assert quantities("75 to 91 billion") == quantities("750 亿至 910 亿") == ["75000000000", "91000000000"]

    def test_names_are_no_quantities_and_versions_stay(self):
        assert quantities("an H100 in int8, torch 2.13.0, 81 MB") == ["2.13.0", "81"]

    def test_a_missing_or_changed_number_is_seen(self):
        assert quantities("60.44 ± 1.75") != quantities("60.44 ± 1.57") != quantities("60.44")


class TestPageCode:
    def test_output_is_put_under_the_statement_that_printed_it(self):
        page = "```python\nx = 2\nprint(x)\n#> 1\nprint('a\\nb')\n```\n"
        assert run_page(page) == "```python\nx = 2\nprint(x)\n#> 2\nprint('a\\nb')\n#> a\n#> b\n```\n"

    def test_blocks_of_a_page_share_names_and_files(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        page = "```text\n# words.txt\n贺兰草\n```\n"
        page += "```python\nprint(open('words.txt', encoding='utf-8').read().strip())\n```\n"
        assert "#> 贺兰草\n" in run_page(page)

    def test_a_block_that_is_not_run_must_still_parse(self):
        mark = "<!-- not run: reason -->\n"
        assert run_page(mark + "```python\nraise SystemExit\n```\n").endswith("raise SystemExit\n```\n")
        with pytest.raises(SyntaxError):
            run_page(mark + "```python\nx =\n```\n")
        with pytest.raises(AssertionError):
            run_page(mark + "```sh\ncige no-such-verb\n```\n")

    def test_a_command_that_fails_fails_the_page(self):
        with pytest.raises(AssertionError, match="exit code 2"):
            run_page("```sh\ncige evaluate --data no-such-file.bmes\n```\n")

    def test_comments_may_differ_between_languages_and_code_may_not(self):
        (english,) = blocks("```python\n# count\nx = 1  # one\n#> 1\n```\n")
        (chinese,) = blocks("```python\n# 计数\nx = 1  # 一\n#> 1\n```\n")
        (other,) = blocks("```python\nx = 2\n#> 1\n```\n")
        assert without_comments(english) == without_comments(chinese) != without_comments(other)


@pytest.mark.parametrize(("in_chinese", "usage"), [(False, "usage: cige {} [-h]"), (True, "用法：cige {} [-h]")])
def test_the_page_of_commands_has_every_verb(in_chinese, usage, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    page = import_module("commands_page").commands_page(in_chinese=in_chinese)
    assert re.findall(r"^## cige (.*)$", page, re.MULTILINE) == list(VERBS)
    assert all(usage.format(verb) in page for verb in VERBS)
    assert ("不报告分数低于此值的实体" in page) == in_chinese


def test_figures_of_a_table_stay_on_one_line(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    unbroken = import_module("table_cells").unbroken
    row = "| flat | 60.48 ± 1.38 | 1.67 [-5.24, 8.57] | 1, 2, 3 |"
    kept = "| flat | 60.48\u00a0±\u00a01.38 | 1.67 [-5.24,\u00a08.57] | 1,\u00a02,\u00a03 |"
    prose = "60.48 ± 1.38\n```\n| a ± b |\n```\n"
    assert unbroken(prose + row) == prose + kept
