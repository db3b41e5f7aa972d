"""The page in Chromium: it finds what Python finds, keeps words, works without a network, and fits into 30 MB."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest
from web_build import build

from cige import load

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WITHOUT = [
    (CHROMIUM is None, "no Chromium (apt-get install chromium)"),
    (find_spec("playwright") is None, "no playwright (pip install 'cige[dev]')"),
    (find_spec("ziglang") is None, "no compiler to WebAssembly (pip install 'cige[web]')"),
]
pytestmark = [pytest.mark.skipif(is_missing, reason=reason) for is_missing, reason in WITHOUT]

MOST_BYTES = 30_000_000  # that a browser fetches on the first visit
SOON_MS = 120_000  # no bar of speed: benchmarks/speed/wasm.py measures that
TEXTS = (
    "昨天，罗氏公司总裁林晓岚飞抵南京市。阿拉善贺兰草宣布了新的计划。",
    "姓名\t公司\n王小明\t中国移动\n李雷\t阿里巴巴",
    "Apple与Microsoft Research Asia在北京合作，😀Barack Obama访问了New York。",
    "《红楼梦》和《人民日报》都在图书馆里，" * 20,
)
WORD = "阿拉善贺兰草"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("web")
    build.build(out)
    return out


class Counting(SimpleHTTPRequestHandler):
    """Files of a folder; the paths that were asked for are noted, and the bytes that were sent for them."""

    def __init__(self, *given, asked: list[tuple[str, int]], **more):
        self.asked = asked
        super().__init__(*given, **more)

    def copyfile(self, source, outputfile) -> None:
        content = source.read()
        self.asked.append((self.path, len(content)))
        outputfile.write(content)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """The address of a server, and what it was asked for."""
    asked: list[tuple[str, int]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Counting, directory=str(folder), asked=asked))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def context():
    """A browser with nothing in its cache."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        own = browser.new_context(locale="en-US")
        own.set_default_timeout(SOON_MS)
        yield own
        browser.close()


def opened(context, address: str):
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("() => document.getElementById('json').textContent")
    return page


def read(page, text: str) -> list[dict]:
    """What the page shows for a text."""
    page.fill("#text", text)
    return shown(page, text)


def shown(page, text: str) -> list[dict]:
    page.wait_for_function("text => JSON.parse(document.getElementById('json').textContent).text === text", arg=text)
    return json.loads(page.text_content("#json"))["entities"]


def in_utf16(text: str, place: int) -> int:
    return len(text[:place].encode("utf-16-le")) // 2


def expected(ner, text: str, words=()) -> list[tuple]:
    found = ner(text, words=words)
    return [(in_utf16(text, e.start), in_utf16(text, e.end), e.label, e.text) for e in found]


def facts(entities: list[dict]) -> list[tuple]:
    return [(e["start"], e["end"], e["label"], e["text"]) for e in entities]


def test_the_first_visit_fetches_each_file_once_and_at_most_30_megabytes(folder, context):
    with served(folder) as (address, asked):
        page = opened(context, address)
        page.wait_for_function("() => document.getElementById('offline').textContent")
    of_model = [path for path, _ in asked if path.endswith(".gz")]
    assert len(of_model) == len({*of_model}) == 8
    assert 20_000_000 < sum(size for _, size in asked) <= MOST_BYTES


def test_it_finds_what_python_finds_and_goes_on_without_a_network(folder, context):
    ner = load(precision="float32")
    with served(folder) as (address, _):
        page = opened(context, address)
        for text in TEXTS:
            entities = read(page, text)
            assert facts(entities) == expected(ner, text)
            assert entities or text == ""
            scores = [e.score for e in ner(text)]
            assert [e["score"] for e in entities] == pytest.approx(scores, abs=2e-3)  # products of 12-bit numbers
        page.wait_for_function("() => document.getElementById('offline').textContent.includes('without a network')")
        page.close()
    context.set_offline(True)  # and there is no server
    page = opened(context, address)
    assert facts(read(page, TEXTS[0])) == expected(ner, TEXTS[0])


def test_words_of_ones_own_are_kept_in_the_browser(folder, context):
    ner, text = load(precision="float32"), TEXTS[0]
    with served(folder) as (address, _):
        page = opened(context, address)
        read(page, text)
        page.fill("#word", WORD)
        page.select_option("#type", "BRAND")
        page.press("#word", "Enter")
        page.wait_for_function("word => document.getElementById('own').textContent.includes(word)", arg=WORD)
        page.close()
        page = opened(context, address)
        assert WORD in page.text_content("#own")
        assert facts(read(page, text)) == expected(ner, text, {WORD: "BRAND"})
        page.click("#own button")
        page.reload()
        page.wait_for_function("() => document.getElementById('json').textContent")
        assert page.text_content("#own") == ""


def test_a_text_that_is_typed_while_the_model_loads_is_read(folder, context):
    with served(folder) as (address, _):
        page = context.new_page()
        page.route("**/model.safetensors.gz", lambda route: (page.wait_for_timeout(300), route.continue_()))
        page.goto(address)
        page.fill("#text", TEXTS[1])
        assert shown_soon(page, TEXTS[1])


def shown_soon(page, text: str) -> list[dict]:
    page.wait_for_function(
        "text => (document.getElementById('json').textContent || '').includes(JSON.stringify(text))", arg=text
    )
    return json.loads(page.text_content("#json"))["entities"]
