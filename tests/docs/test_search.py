"""The search of the Chinese pages of the site finds the words that people type."""

from __future__ import annotations

import importlib.util
import json
import re

import jieba
import pytest
from page_code import DOCS, ROOT

MKDOCS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def check_site():
    spec = importlib.util.spec_from_file_location("check_site", ROOT / ".ci" / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def separator() -> re.Pattern[str]:
    return re.compile(re.search(r"^ +separator: '(.*?)'", MKDOCS, re.M)[1])


@pytest.fixture(scope="module")
def pages() -> str:
    """The Chinese pages, segmented as the search plug-in of the site does."""
    words = jieba.Tokenizer()
    words.load_userdict(str(ROOT / re.search(r"jieba_dict_user: (\S+)", MKDOCS)[1]))
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.zh.md"))
    return re.sub(r"[\u4e00-\u9fff]+", lambda run: "\u200b" + "\u200b".join(words.cut(run[0])) + "\u200b", text)


def test_words_are_separated_and_known(pages, separator):
    found = set(separator.split(pages))
    assert {"用户词", "自定义词典", "断点", "训练", "实体"} <= found
    assert set(check_site().SEARCHED) <= found


def test_the_site_is_built_with_what_separates_chinese_words():
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "jieba" in re.search(r"^docs = \[(.*?)^\]", extras, re.M | re.S)[1]


def test_the_built_site_is_checked_for_these_words(tmp_path, separator):
    def problems(text: str, location: str) -> list[str]:
        index = {
            "config": {"separator": separator.pattern},
            "docs": [{"title": "断点", "text": text, "location": location}],
        }
        (tmp_path / "search").mkdir(exist_ok=True)
        (tmp_path / "search" / "search_index.json").write_text(json.dumps(index), encoding="utf-8")
        return check_site().search_problems(tmp_path)

    assert problems("<p>\u200b用户词\u200b和\u200b自定义词典\u200b</p>", "zh/index.html") == []
    (problem,) = problems("<p>\u200b用户词\u200b和\u200b自定义\u200b词典</p>", "zh/index.html")
    assert problem == "search: no Chinese page is found by 自定义词典"
    assert len(problems("\u200b用户词\u200b和\u200b自定义词典", "index.html")) == 3
