"""The page in a browser, opened as tests open it, and its pictures for the README.

Write the pictures anew with `python tests/helpers/page_figures.py --write`; Chromium and a font for Chinese must be
there (Debian: apt-get install chromium fonts-noto-cjk).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from running_server import SOON, server

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FIGURES = Path(__file__).parents[2] / "docs/figures"
MAX_BYTES = 150_000
TEXT = "昨天，罗氏公司总裁林晓岚飞抵南京市。阿拉善贺兰草宣布了新的计划。"
WORD, LABEL = "阿拉善贺兰草", "COMPANY"
KINDS = {
    "page_light.png": ("light", "en-US"),
    "page_dark.png": ("dark", "en-US"),
    "page_light.zh.png": ("light", "zh-CN"),
    "page_dark.zh.png": ("dark", "zh-CN"),
}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window; it is closed at the end."""
    with sync_playwright() as playwright:
        # Chromium refuses its sandbox to root, as whom containers run.
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        try:
            yield found
        finally:
            found.close()


def take_picture(browser: Browser, address: str, path: Path, *, scheme: str, language: str, width: int = 1000) -> None:
    """A picture of the page from its top to the end of the lattice, with a word of the user's own pointed at."""
    context = browser.new_context(viewport={"width": width, "height": 900}, locale=language, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(1e3 * SOON)
    page.goto(address)
    page.fill("#text", TEXT)
    marked = f"#found mark:has-text('{WORD}')"
    page.wait_for_function("text => document.getElementById('json').textContent.includes(text)", arg=TEXT)
    page.fill("#word", WORD)
    page.fill("#type", LABEL)
    page.press("#type", "Enter")
    page.locator("#lattice .own").first.wait_for(state="attached")
    page.evaluate("document.activeElement.blur()")
    page.evaluate("document.getElementById('status').style.visibility = 'hidden'")  # it tells milliseconds
    page.locator(marked).last.hover()
    bottom = page.evaluate("document.getElementById('part').getBoundingClientRect().bottom + scrollY")
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": bottom + 12})
    context.close()


def write_figures(folder: Path) -> None:
    with server() as (client, _), chromium() as browser:
        for name, (scheme, language) in KINDS.items():
            take_picture(browser, str(client.base_url), folder / name, scheme=scheme, language=language)
            _reduce_colours(folder / name)
            size = (folder / name).stat().st_size
            print(f"{folder / name}: {size / 1e3:.0f} kB")
            if size > MAX_BYTES:
                raise SystemExit(f"{name}: {size:,} bytes; at most {MAX_BYTES:,} are for the README")


def _reduce_colours(path: Path) -> None:
    """128 colours are enough for what the page shows, and the file is a third of what it was."""
    from PIL import Image

    Image.open(path).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(f"usage: python {sys.argv[0]} --write")
    write_figures(FIGURES)
