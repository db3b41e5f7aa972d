"""Rows and pages that are made from results alone."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import board_results
import pytest

from cige.errors import CigeError
from cige.leaderboard.pages import CHINESE, ENGLISH, figures_of, html_page, markdown_page
from cige.leaderboard.papers import board_recipes, papers
from cige.leaderboard.table import board_of, rows_of
from cige.recipes.shipped import shipped
from cige.reports.comparison_views import mean_sd
from cige.reports.significance import Difference

SEEDS = (1, 2, 3)
RESULTS = [
    board_results.result(system=system, seed=seed, hits=hits)
    for system, hits in (("no_lexicon", 0.5), ("flat", 0.7), ("lgn", 0.69))
    for seed in SEEDS
] + [replace(board_results.result(data="cluener", seed=1), test_f1=None)]


def test_rows_are_ranked_and_compared_with_their_twins() -> None:
    rows = rows_of(RESULTS, "weibo")
    assert [row.name for row in rows] == ["flat", "lgn", "no_lexicon"]
    best, lgn, twin = rows
    assert best.behind is None and best.paper is not None and best.paper.scores["weibo"] == 60.32
    assert best.over_twin is not None and best.over_twin.value == pytest.approx(0.2, abs=0.04)
    assert best.over_twin.low > 0 and best.over_twin.p_value < 0.05
    assert lgn.behind is not None and lgn.behind.p_value > 0.05 and lgn.over_twin is None  # its twin has no result
    assert twin.paper is None and twin.behind is not None and twin.behind.value == best.over_twin.value
    assert best.word_gain == pytest.approx(0.1)


def test_a_twin_that_is_better_than_its_system() -> None:
    worse = [board_results.result(system="flat", seed=seed, hits=0.4) for seed in SEEDS]
    rows = rows_of([*worse, *RESULTS[:3]], "weibo")
    assert [row.name for row in rows] == ["no_lexicon", "flat"]
    gain = rows[1].over_twin
    assert gain is not None and gain.value < 0 and gain.low < gain.value < gain.high
    assert rows[0].over_twin is None


def test_seeds_of_other_settings_or_sentences_are_refused() -> None:
    with pytest.raises(CigeError, match="seeds with different settings"):
        rows_of([RESULTS[0], replace(RESULTS[1], settings="other")], "weibo")
    with pytest.raises(CigeError, match="results of different sentences"):
        rows_of([RESULTS[0], replace(RESULTS[3], counts=RESULTS[3].counts[1:])], "weibo")


def test_results_of_other_data_or_vectors_are_refused() -> None:
    read = {"train": "ef" * 32, "word": "01" * 32}
    first = replace(RESULTS[0], data_sha256=read)
    assert len(rows_of([first, RESULTS[3]], "weibo")) == 2  # which reads no words
    for name in read:
        with pytest.raises(CigeError, match=f"no_lexicon-1.json was made with another file '{name}'.*flat-1"):
            rows_of([first, replace(RESULTS[3], data_sha256=read | {name: "23" * 32})], "weibo")


def test_a_gain_that_was_not_measured_is_not_shown() -> None:
    (row,) = rows_of([replace(RESULTS[0], user_words={"names of the file": 0.8})], "weibo")
    assert row.word_gain is None


@pytest.mark.parametrize("wording", [ENGLISH, CHINESE])
def test_the_page_has_every_result_and_says_what_is_open(wording) -> None:
    page = markdown_page(board_of(RESULTS), ["msra/flat-1"], wording=wording, links="[other](x.md)")
    assert page.startswith(f"# {wording.title}\n\n[other](x.md)\n\n")
    rows = re.findall(r"^\| (\w+) \|(.*)$", page, re.MULTILINE)
    assert [name for name, _ in rows if name in ("flat", "lgn", "no_lexicon")] == ["flat", "lgn", "no_lexicon", "flat"]
    first = rows_of(RESULTS, "weibo")[0]
    of_flat = next(cells for name, cells in rows if name == "flat").split("|")
    assert of_flat[0].strip() == "1, 2, 3" and of_flat[4].strip() == "60.32" and of_flat[5].strip() == wording.best
    assert of_flat[3].strip() == mean_sd([result.new_f1 for result in first.results]) != of_flat[2].strip()
    assert first.paper is not None and wording.paper_of(first) in page
    assert "msra/flat-1" in page and "1" in page.rpartition("msra")[0].splitlines()[-1]
    assert wording.none_open in markdown_page(board_of(RESULTS), [], wording=wording)


def test_the_two_pages_have_the_same_figures() -> None:
    tables = [
        re.findall(r"\d+\.\d+", markdown_page(board_of(RESULTS), [], wording=wording)) for wording in (ENGLISH, CHINESE)
    ]
    assert tables[0] == tables[1]


def test_the_html_page_is_whole_and_sorts() -> None:
    page = html_page(board_of(RESULTS), [], wording=ENGLISH, figures=figures_of(board_of(RESULTS)))
    assert "{{" not in page and page.count('<table class="sortable">') == 2 and page.count("<svg") == 2
    assert "aria-sort" in page and not re.search(r'(?:src|href)="(?!#)', page)  # nothing is read from elsewhere
    table = page[page.index("<table") : page.index("</table>") + len("</table>")]
    assert len(ElementTree.fromstring(table).findall("tbody/tr")) == 3


def test_every_paper_is_a_system_with_recipes() -> None:
    names = board_recipes()
    assert len(names) == len(set(names)) and all(name in shipped() for name in names)
    for system, paper in papers().items():
        assert f"weibo/{system}" in names
        assert paper.twin is None or f"weibo/{paper.twin}" in names
        assert paper.differs.endswith(".") and paper.differs_zh.endswith("。")
        assert all(20 < score < 100 for score in paper.scores.values())


def test_an_interval_that_only_says_that_seeds_are_missing_is_not_shown():
    far = Difference(0.0063, -1.0, 1.0, 1.0, covers_seeds=True)
    near = replace(far, low=-0.0137, high=0.0263)
    rows = [replace(row, behind=far, over_twin=near) for row in rows_of(RESULTS, "weibo")]
    page = markdown_page({"weibo": rows}, [], wording=ENGLISH)
    assert "| 0.63 [too few seeds] | 1.000 | 0.63 [-1.37, 2.63] |" in page
    assert "0.63 [种子太少]" in markdown_page({"weibo": rows}, [], wording=CHINESE)
