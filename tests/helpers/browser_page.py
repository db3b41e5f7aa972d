"""What a user does in the page of a server, and what the page then shows."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page


def type_text(page: Page, text: str) -> None:
    page.fill("#text", text)
    wait_for(page, text)


def wait_for(page: Page, text: str) -> None:
    page.wait_for_function(
        "text => { try { return JSON.parse(document.getElementById('json').textContent).text === text } catch { } }",
        arg=text,
    )


def told(page: Page) -> dict[str, Any]:
    return json.loads(page.text_content("#json") or "")


def highlighted(page: Page) -> list[list[Any]]:
    """(highlighted text, start, end, label) of each mark, offsets in UTF-16 code units."""
    return page.eval_on_selector_all(
        "#found mark",
        "marks => marks.map(m => [m.querySelector('span').textContent, +m.dataset.start, +m.dataset.end, "
        "m.querySelector('small').textContent])",
    )


def add_word(page: Page, word: str, label: str = "") -> None:
    page.fill("#word", word)
    page.fill("#type", label)
    page.press("#type", "Enter")
