"""The page in a browser: typing, words, offsets, long and hostile text, keyboard, phone, and accessibility."""

import json
import os
import re
from pathlib import Path

import page_figures
import pytest
import tiny
import tiny_grid
from axe_playwright_python.sync_playwright import Axe
from browser_page import add_word, highlighted, told, type_text, wait_for
from page_figures import CHROMIUM
from playwright.sync_api import expect
from running_server import SOON, server
from served import TEXT

from cige import load
from cige.drawing.colours import colour_of

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (apt-get install chromium)")


@pytest.fixture
def open_page(browser, address):
    """Opens the page; at the end nothing may have gone wrong in it, and nothing may have been asked of other hosts."""
    pages, wrong = [], []

    def open_it(*, width=1000, language="en-US", scheme="light", text=TEXT):
        context = browser.new_context(viewport={"width": width, "height": 900}, locale=language, color_scheme=scheme)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address.rstrip("/"))
        page = context.new_page()
        page.set_default_timeout(1e3 * SOON)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda asked: None if asked.url.startswith((address, "data:")) else wrong.append(asked.url))
        page.goto(address)
        pages.append(context)
        if text is not None:
            type_text(page, text)
        return page

    yield open_it
    for context in pages:
        context.close()
    assert wrong == []


def cut(text, start, end):
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


def test_typing_shows_entities_and_the_lattice(open_page):
    page = open_page()
    assert [(text, label) for text, _, _, label in highlighted(page)] == [
        ("昨天", "TIME"),
        ("阿拉善贺兰", "LOC"),
    ]
    drawn = page.eval_on_selector_all("#lattice .word", "words => words.length")
    assert drawn == len(load().analyze(TEXT).words)
    type_text(page, "林晓岚去了南京市")
    assert [text for text, *_ in highlighted(page)] == ["林晓岚", "南京市"]
    page.fill("#text", "")
    expect(page.locator("#status")).to_have_text("No entity.")


def test_a_word_changes_lattice_and_entities_and_its_colours_are_those_of_drawings(open_page):
    page = open_page()
    add_word(page, "阿拉善贺兰草", "COMPANY")
    expect(page.locator("#found mark.new")).to_have_count(1)
    assert [(text, label) for text, _, _, label in highlighted(page)] == [("昨天", "TIME"), ("阿拉善贺兰草", "COMPANY")]
    page.set_viewport_size({"width": 900, "height": 900})  # drawn anew, and what the word changed is still outlined
    expect(page.locator("#lattice svg")).not_to_have_attribute("width", "1000")
    expect(page.locator("#found mark.new")).to_have_count(1)
    expect(page.locator("#lattice .word.own")).to_have_count(1)
    fill = page.locator("#lattice .mark path").last.get_attribute("fill")
    assert fill == colour_of("COMPANY") == page.evaluate("colourOf('COMPANY')")
    for label in ("BRAND", "新类型", "😀", "toString"):
        assert page.evaluate("label => colourOf(label)", label) == colour_of(label)
    page.get_by_label("Remove 阿拉善贺兰草").click()
    expect(page.locator("#lattice .word.own")).to_have_count(0)
    expect(page.locator("#found mark small")).to_have_text(["TIME", "LOC"])


def test_highlighted_text_is_what_the_offsets_say(open_page):
    text = "😀𠮷林晓岚在南京市🎉\n台灣總統陳水扁昨天在台北會見了張曉風。"
    page = open_page(text=text)
    found = told(page)
    assert found["offsets"] == "utf16" and len(found["entities"]) >= 4
    expected = [[e["text"], e["start"], e["end"], e["label"]] for e in found["entities"]]
    assert highlighted(page) == expected
    assert all(cut(text, start, end) == shown for shown, start, end, _ in expected)
    in_page = page.evaluate("[...document.querySelectorAll('#found :is(b, small, i)')].forEach(x => x.remove())")
    assert in_page is None and page.text_content("#found") == text


def test_attention_is_shown_as_width_to_pointer_and_keyboard(open_page):
    page = open_page()
    widths = "words => words.map(w => parseFloat(getComputedStyle(w).strokeWidth))"
    before = page.eval_on_selector_all("#lattice .edge", widths)
    page.hover("#found mark:has-text('贺兰')")
    during = page.eval_on_selector_all("#lattice .edge", widths)
    assert max(during) == 7 and len(set(during)) > 3 and set(before) == {1}
    page.mouse.move(1, 1)
    assert page.eval_on_selector_all("#lattice .edge", widths) == before
    page.focus("#found mark:has-text('贺兰')")
    assert page.eval_on_selector_all("#lattice .edge", widths) == during


def test_it_can_be_used_by_keyboard_alone(open_page):
    page = open_page()
    page.focus("#text")
    page.keyboard.press("Tab")
    page.keyboard.type("阿拉善贺兰草")
    page.keyboard.press("Tab")
    page.keyboard.type("COMPANY")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#found mark small")).to_have_text(["TIME", "COMPANY"])
    assert page.evaluate("document.activeElement.id") == "word"
    page.focus("#copy")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_have_text("Copied")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == told(page)


def test_a_long_paste_is_read_whole_and_the_page_has_little_to_compute(open_page):
    page = open_page()
    text = ("林晓岚从巴塞尔飞抵南京市长江大桥。" * 1200)[:20_000]
    # What the page computes, in seconds of the processor, which other work on a busy machine does not add to.
    browser = page.context.new_cdp_session(page)
    browser.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.fill("#text", text)
    wait_for(page, text)
    metrics = {metric["name"]: metric["value"] for metric in browser.send("Performance.getMetrics")["metrics"]}
    assert 0 < metrics["TaskDuration"] < 5
    entities = told(page)["entities"]
    assert len(entities) > 3000 and all(text[e["start"] : e["end"]] == e["text"] for e in entities)
    assert len(highlighted(page)) == len(entities)
    assert "of 20000" in page.text_content("#part")
    page.fill("#text", TEXT)
    wait_for(page, TEXT)


def test_names_that_were_found_are_looked_for_in_the_rest_of_the_text_where_that_is_switched_on(open_page):
    text = "著名演员杜鹃在北京出席了发布会。随后杜鹃说，明年再来。很多人喜欢杜鹃。"
    page = open_page(text=text)
    names = page.locator("#found mark:has-text('杜鹃')")
    expect(names).to_have_count(2)
    switch = page.get_by_role("switch", name=re.compile("One name, one answer"))
    expect(switch).not_to_be_checked()
    switch.focus()
    page.keyboard.press("Space")
    expect(names).to_have_count(3)
    expect(page.locator("#found mark.new")).to_have_count(1)
    expect(page.locator("#lattice .word.own")).to_have_count(3)
    expect(page.locator("#part")).to_contain_text("names that were looked for")
    assert sum(e["text"] == "杜鹃" for e in told(page)["entities"]) == 3
    type_text(page, text + "林晓岚在南京市。" * 60)  # more than is drawn at once
    assert sum(e["text"] == "杜鹃" for e in told(page)["entities"]) == 3
    page.reload()
    expect(switch).to_be_checked()
    type_text(page, text)
    expect(names).to_have_count(3)
    page.get_by_text("One name, one answer").click()
    expect(names).to_have_count(2)


def test_names_are_looked_for_with_a_model_of_nested_entities_too(browser, tmp_path):
    tiny_grid.model().save(tmp_path / "nested")
    with server("--model", str(tmp_path / "nested")) as (client, _):
        page = browser.new_context(locale="en-US").new_page()
        page.set_default_timeout(1e3 * SOON)
        page.goto(str(client.base_url))
        type_text(page, "李明在北京")
        found = {(e["start"], e["end"]) for e in told(page)["entities"]}
        longest = [max(end for first, end in found if first == start) for _, start, _, _ in highlighted(page)]
        assert len({start for start, _ in found}) < len(found)  # some begin at the same character
        assert [end for _, _, end, _ in highlighted(page)] == longest
        n_nested = len(told(page)["entities"])
        with page.expect_response("**/v1/lattice") as answer:
            page.get_by_text("One name, one answer").click()
        assert answer.value.status == 200
        n_flat = len(answer.value.json()["entities"])
        assert 0 < n_flat < n_nested
        expect(page.locator("#found mark")).to_have_count(n_flat)
        page.context.close()


def test_words_are_kept_over_a_reload(open_page):
    page = open_page()
    add_word(page, "阿拉善贺兰草", "COMPANY")
    expect(page.locator("#own li")).to_have_count(1)
    page.reload()
    expect(page.locator("#own li")).to_have_text(["阿拉善贺兰草 COMPANY×"])
    type_text(page, TEXT)
    expect(page.locator("#found mark small")).to_have_text(["TIME", "COMPANY"])
    page.get_by_label("Remove 阿拉善贺兰草").click()
    page.reload()
    expect(page.locator("#own li")).to_have_count(0)
    page.evaluate("localStorage.setItem('cige-words', '[{\"text\": 3}, 4]')")
    page.reload()
    type_text(page, TEXT)
    expect(page.locator("#own li")).to_have_count(0)


@pytest.mark.parametrize(("language", "name"), [("en-US", "time"), ("zh-CN", "时间")])
def test_a_chip_has_the_name_of_its_label_the_label_and_its_score(open_page, language, name):
    page = open_page(language=language)
    chip = page.locator("#found mark").first
    assert chip.locator("b").text_content() == name and chip.locator("small").text_content() == "TIME"
    entity = told(page)["entities"][0]
    assert chip.locator("i").text_content() == f"{entity['score']:.2f}"
    assert all(entity["score"] == round(entity["score"], 4) for entity in told(page)["entities"])


def test_types_can_be_hidden_and_low_scores_left_out(open_page):
    page = open_page()
    button = page.locator("#labels button[data-label=TIME]")
    expect(button).to_have_text("time TIME 1")
    button.click()
    expect(page.locator("#found mark small")).to_have_text(["LOC"])
    assert [entity["label"] for entity in told(page)["entities"]] == ["LOC"]
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#lattice .mark:visible")).to_have_count(1)
    button.click()
    expect(page.locator("#found mark")).to_have_count(2)
    with page.expect_request("**/v1/lattice") as asked:
        page.locator("#least").fill("1")
    assert asked.value.post_data_json["min_score"] == 1
    expect(page.locator("#found mark")).to_have_count(0)
    expect(page.locator("#lowest")).to_have_text("1.00")


def test_samples_and_files_are_read(open_page):
    page = open_page()
    page.select_option("#sample", index=2)
    wait_for(page, page.evaluate("SAMPLES[1]"))
    for content in ("林晓岚去了南京市".encode(), "林晓岚去了南京市".encode("gb18030")):
        page.set_input_files("#file", {"name": "news.txt", "mimeType": "text/plain", "buffer": content})
        wait_for(page, "林晓岚去了南京市")
        type_text(page, TEXT)
    dropped = page.evaluate_handle(
        "() => { const data = new DataTransfer(); data.items.add(new File(['杜鹃在北京'], 'a.txt')); return data; }"
    )
    page.dispatch_event("#text", "drop", {"dataTransfer": dropped})
    wait_for(page, "杜鹃在北京")
    page.set_input_files("#file", {"name": "a.bin", "mimeType": "text/plain", "buffer": b"\x00\xff\xff"})
    expect(page.locator("#error")).to_contain_text("a.bin is not a text")
    page.fill("#word", " \u3000 ")
    page.press("#word", "Enter")
    expect(page.locator("#wrong")).to_have_text("A word is needed; blanks alone are none.")


def test_no_name_is_cut_at_the_end_of_a_line_on_a_phone(open_page):
    page = open_page(width=380, text="林晓岚从巴塞尔飞抵南京市长江大桥。" * 6)
    lines = page.eval_on_selector_all("#found mark > span", "spans => spans.map(s => s.getClientRects().length)")
    assert len(lines) > 12 and set(lines) == {1}
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


SCRIPTS = ["<script>alert(1)</script>林晓岚", "<img src=x onerror=alert(1)>南京市", "]]><svg onload=alert(1)>"]


@pytest.mark.parametrize("text", [*SCRIPTS, "</textarea>&amp;\0\u202e"])
def test_script_is_shown_and_never_run(open_page, text):
    page = open_page(text=text)
    page.evaluate("[...document.querySelectorAll('#found :is(b, small, i)')].forEach(x => x.remove())")
    assert page.text_content("#found") == told(page)["text"] == text
    add_word(page, text.strip("\0\u202e"), "<b>alert(1)</b>")
    expect(page.locator("#own li")).to_have_count(1)
    page.wait_for_load_state("networkidle")
    assert page.locator("main script, main img, #own b").count() == 0


def test_a_token_is_asked_for_where_the_server_has_one(browser):
    with server(token="geheim") as (client, _):
        page = browser.new_context().new_page()
        page.goto(str(client.base_url))
        page.fill("#token", "geheim")
        page.press("#token", "Enter")
        expect(page.locator("#found mark").first).to_be_visible(timeout=1e3 * SOON)
        page.context.close()


def test_the_model_is_chosen_where_there_are_several(browser, open_page, tmp_path):
    expect(open_page().locator("#models")).to_be_hidden()
    tiny.model().save(tmp_path / "tiny")
    with server("--model", "news=bundled", "--model", f"tiny={tmp_path / 'tiny'}") as (client, _):
        page = browser.new_context(locale="en-US").new_page()
        page.set_default_timeout(1e3 * SOON)
        page.goto(str(client.base_url))
        type_text(page, TEXT)
        expect(page.get_by_label("Model")).to_have_value("news")
        before = highlighted(page)
        with page.expect_request("**/v1/lattice") as asked:
            page.get_by_label("Model").select_option("tiny")
        assert asked.value.post_data_json["model"] == "tiny"
        expected = client.post("/v1/entities", json={"text": TEXT, "offsets": "utf16", "model": "tiny"}).json()
        of_tiny = [[e["text"], e["start"], e["end"], e["label"]] for e in expected["results"][0]["entities"]]
        assert of_tiny != before
        page.wait_for_function("n => JSON.parse(document.getElementById('json').textContent).entities.length == n",
            arg=len(of_tiny))  # fmt: skip
        assert highlighted(page) == of_tiny
        assert page.eval_on_selector_all("#types option", "options => options.map(o => o.value)") == tiny.LABELS
        page.reload()
        expect(page.get_by_label("Model")).to_have_value("tiny")
        page.context.close()


def test_pictures_of_the_page_are_in_the_readme_and_can_be_taken_anew(browser, address, tmp_path):
    root = page_figures.FIGURES.parents[1]
    for readme, ending in (("README.md", ".png"), ("README.zh.md", ".zh.png")):
        shown = re.findall(r"docs/figures/(page_\S+?)[\")]", (root / readme).read_text(encoding="utf-8"))
        assert set(shown) == {f"page_light{ending}", f"page_dark{ending}"}
    for name in page_figures.KINDS:
        assert (page_figures.FIGURES / name).stat().st_size < page_figures.MAX_BYTES
    taken = tmp_path / "page.png"
    page_figures.take_picture(browser, address, taken, scheme="light", language="en-US")
    content = taken.read_bytes()
    assert int.from_bytes(content[16:20], "big") == 1000 and 10_000 < len(content) < page_figures.MAX_BYTES


def test_chinese_and_english(open_page):
    page = open_page(language="zh-CN")
    assert page.evaluate("document.documentElement.lang") == "zh" and page.inner_text("#copy") == "复制 JSON"
    page.click("#language")
    assert page.inner_text("#copy") == "Copy as JSON" and page.evaluate("document.documentElement.lang") == "en"
    assert page.evaluate("JSON.stringify(Object.keys(SAID.en)) === JSON.stringify(Object.keys(SAID.zh))")


@pytest.mark.parametrize("width", [1000, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off_and_axe_finds_no_serious_fault(open_page, width, scheme):
    page = open_page(width=width, scheme=scheme, text=TEXT * 3)
    add_word(page, "阿拉善贺兰草", "COMPANY")
    expect(page.locator("#lattice .own").first).to_be_attached()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    faults = Axe().run(page).response["violations"]
    assert [(fault["id"], fault["impact"]) for fault in faults if fault["impact"] in ("serious", "critical")] == []
    if folder := os.environ.get("CIGE_SCREENSHOTS"):
        page.focus("#found mark")
        page.screenshot(path=Path(folder) / f"page-{scheme}-{width}.png", full_page=True)
