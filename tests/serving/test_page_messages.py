"""What the page says of words that cannot be used and of failures of the server, in English and in Chinese."""

import json
import re
from functools import partial

import pytest
from browser_page import add_word, highlighted, type_text, wait_for
from page_figures import CHROMIUM
from playwright.sync_api import Route, expect
from running_server import SOON

from cige.lexicon.user_word import BAD_LABEL, BLOCKED_LABEL, NO_LABEL, UserWord
from cige.lexicon.word_rules import CONTROL, EDGE, EMPTY, SINGLE, TOO_LONG, UNENCODABLE
from cige.serving.refusals import CODES, WORD_CODES, Refused, busy, refused_word, too_many

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (apt-get install chromium)")


def test_a_word_that_cannot_be_used_is_not_added(browser, address):
    """One that stayed in the list would make the server refuse every text."""
    page = browser.new_context(locale="en-US").new_page()
    page.set_default_timeout(1e3 * SOON)
    page.goto(address)
    add_word(page, "草")
    expect(page.locator("#wrong")).to_contain_text("one character")
    add_word(page, "阿拉善贺兰草", "A B")
    expect(page.locator("#wrong")).to_contain_text("was not added", timeout=1e3 * SOON)
    expect(page.locator("#wrong")).to_contain_text("not a label")
    expect(page.locator("#own li")).to_have_count(0)
    assert page.input_value("#word") == "阿拉善贺兰草"
    type_text(page, "林晓岚去了南京市")
    assert [text for text, *_ in highlighted(page)] == ["林晓岚", "南京市"]
    add_word(page, "阿拉善贺兰草", "COMPANY")
    expect(page.locator("#own li")).to_have_count(1)
    expect(page.locator("#wrong")).to_have_text("")
    told = too_many("too_many_words", "words", 1001, 1000, "").body.decode()
    page.route("**/v1/lattice", partial(Route.fulfill, status=413, body=told))
    add_word(page, "林晓岚")
    expect(page.locator("#wrong")).to_contain_text("was not added")
    expect(page.locator("#own li")).to_have_count(1)
    page.context.close()


REASONS = [SINGLE, EMPTY, TOO_LONG, CONTROL, UNENCODABLE, EDGE, BAD_LABEL, NO_LABEL, BLOCKED_LABEL]
NOT_JSON = "the body is not JSON in UTF-8"
FAILURES = [
    (400, Refused("not_json", NOT_JSON), "服务器读不懂这个请求（服务器的说明：the body is not JSON in UTF-8）。"),
    (401, Refused("no_token", "expected the header"), "缺少令牌，或令牌不对。请在上方输入本服务器的令牌。"),
    (408, None, "请求没有及时送到服务器，请重试。"),
    (413, too_many("too_many_characters", "", 600_000, 500_000, ""), "有 600,000 个字符，一次最多读 500,000"),
    (413, too_many("too_many_explained_characters", "", 4_001, 4_000, ""), "有 4,001 个字符，一次最多读 4,000"),
    (413, too_many("too_many_words", "words", 1_001, 1_000, ""), "添加了 1,001 个词，一次最多用 1,000 个"),
    (413, Refused("body_too_long", "", most=4_194_304), "请求超过 4,194,304 字节的上限"),
    (413, None, "内容太长，超过了服务器的上限，请缩短文本。"),
    (422, Refused("invalid", "text: field required"), "请求不符合要求（服务器的说明：text: field required）。"),
    (429, busy(0), "服务器正忙，请 0 秒后再试。"),
    (500, Refused("failed", "the server failed; its log says how"), "服务器内部出错，原因见服务器的日志。"),
    (503, Refused("stopping", "the server is stopping"), "服务器正在停止，请稍后再试。"),
    (
        503,
        Refused("lexicon_file", "words.json: gone"),
        "服务器暂时不能处理请求，请稍后再试（服务器的说明：words.json: gone）。",
    ),
    (504, Refused("deadline", "", milliseconds=30_000), "服务器没能在 30,000 毫秒内给出结果"),
    (502, None, "服务器返回了错误，状态码 502。"),
]


def test_what_the_server_says_is_told_in_chinese(browser, address):
    page = browser.new_context(locale="zh-CN").new_page()
    page.set_default_timeout(1e3 * SOON)
    page.goto(address)
    wait_for(page, page.input_value("#text"))
    for status, told, shown in FAILURES:
        body = "<html>" if told is None else told.body.decode()
        answer = partial(Route.fulfill, status=status, body=body, headers={"Retry-After": "0"})
        page.route("**/v1/lattice", answer)
        page.fill("#text", f"林晓岚{status}{told and told.code}")
        expect(page.locator("#error")).to_contain_text(shown)
        page.unroute("**/v1/lattice")
    page.click("#language")  # what is wrong is told in the new language too
    expect(page.locator("#error")).to_have_text("The server answered with status 502.")
    page.click("#language")
    page.route("**/v1/lattice", lambda route: route.abort())
    page.fill("#text", "南京市")
    expect(page.locator("#error")).to_have_text("服务器没有响应。")
    page.unroute("**/v1/lattice")
    type_text(page, "林晓岚去了南京市")
    expect(page.locator("#error")).to_have_text("")
    for word, label, mode, shown in [
        ("阿拉善贺兰草", "A B", "evidence", "没有添加这个词：类型最多 64 个可见字符"),
        ("阿拉善贺兰草", "", "force", "没有添加这个词：“一定是实体”的词必须填写类型。"),
        ("阿拉善贺兰草", "LOC", "block", "没有添加这个词：“一定不是实体”的词不能填写类型。"),
        ("阿拉善\u200e\u0007贺", "", "evidence", "没有添加这个词：词里有控制字符或换行符，请删去。"),
    ]:
        page.select_option("#mode", mode)
        add_word(page, word, label)
        expect(page.locator("#wrong")).to_have_text(re.compile(re.escape(shown)))
    page.context.close()


def test_every_code_and_every_reason_against_a_word_has_a_chinese_sentence(browser, address):
    page = browser.new_context(locale="zh-CN").new_page()
    page.goto(address)
    assert sorted(page.evaluate("Object.keys(MESSAGES_ZH)")) == sorted(CODES)
    told = [Refused(code, "MESSAGE", given=6, most=5, seconds=1, milliseconds=2) for code in CODES]
    told += [refused_word(UserWord("词"), reason) for reason in REASONS]
    for one in told:
        said = page.evaluate("told => inChinese(told)", json.loads(one.body)["error"] | {"status": one.status_code})
        assert said.endswith("。") and "undefined" not in said and "NaN" not in said and len(said) > 5, one.code
        assert "服务器的说明" not in said or one.code not in WORD_CODES.values()
    page.context.close()
