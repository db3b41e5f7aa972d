"""Checks a built documentation site: every link leads somewhere, and nothing is loaded from elsewhere.

    python .ci/check_site.py build/site

MkDocs checks the links of Markdown. This checks the pages as a browser gets them: links and anchors of the menu, of
the reference and of both languages, and every script, style sheet, font and image, which must be files of the site. It
also checks that the search of Chinese pages knows the words that people type.
"""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "video": "src", "audio": "src"}
LOADED_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "manifest"}
SEARCHED = ("用户词", "自定义词典", "断点")  # words that people who look for help type
_CSS_URL = re.compile(r"""(?:url\(|@import\s+)['"]?(https?:)?//""")


class Page(HTMLParser):
    """The links, loaded files and anchors of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(filter(None, (given.get("id"), given.get("name") if tag == "a" else None)))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and given.get(LOADED[tag]):
            self.loaded.append(given[LOADED[tag]])
        if tag == "link" and LOADED_RELATIONS & set(given.get("rel", "").split()):
            self.loaded.append(given["href"])


def problems(site: Path) -> list[str]:
    """What is wrong with a built site, a line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: no pages"]
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        for link in page.loaded:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                found.append(f"{name}: loads {link} from elsewhere")
            elif not _target(site, path, parts.path).is_file():
                found.append(f"{name}: loads {link}, which is not there")
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = _target(site, path, parts.path) if parts.path else path
            if not target.is_file():
                found.append(f"{name}: links to {link}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: links to {link}; that page has no such anchor")
    for style in sorted(site.rglob("*.css")):
        if _CSS_URL.search(style.read_text(encoding="utf-8")):
            found.append(f"{style.relative_to(site).as_posix()}: loads something from elsewhere")
    return found


def search_problems(site: Path) -> list[str]:
    """Words of SEARCHED that the search of the Chinese pages would not find, a line each."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    separator = re.compile(index["config"]["separator"])
    texts = (page["title"] + " " + page["text"] for page in index["docs"] if page["location"].startswith("zh/"))
    found = {word for text in texts for word in separator.split(re.sub("<[^>]*>", " ", text))}
    return [f"search: no Chinese page is found by {word}" for word in SEARCHED if word not in found]


def _target(site: Path, page: Path, path: str) -> Path:
    """The file that a path on a page means; a folder means its index.html."""
    path = unquote(path)
    target = site / path.lstrip("/") if path.startswith("/") else page.parent / path
    target = target.resolve()
    return target / "index.html" if target.is_dir() else target


def main() -> int:
    site = Path(sys.argv[1]).resolve()
    found = problems(site) + search_problems(site)
    print("\n".join(found) or f"{len(list(site.rglob('*.html')))} pages, every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
