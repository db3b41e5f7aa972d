"""A hook of MkDocs: puts the pages of the site together in build/pages, and has MkDocs read them there.

These are the files of docs/; the model cards in both languages, CONTRIBUTING.md and CHANGELOG.md, which stay where
people look for them in the repository; notebooks as pages, with the outputs that they hold; and the help of every
command. Links between these files work in the repository, and are rewritten so that they work on the site. Figures of
tables are kept on one line.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from pymdownx.slugs import slugify

sys.path.insert(0, str(Path(__file__).parent))

from commands_page import commands_page
from table_cells import unbroken

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
ELSEWHERE = {  # file of the repository -> page of the site
    "src/cige/bundled/MODEL_CARD.md": "model_card.md",
    "src/cige/bundled/MODEL_CARD.zh.md": "model_card.zh.md",
    "src/cige/bundled_research/MODEL_CARD.md": "model_card_research.md",
    "src/cige/bundled_research/MODEL_CARD.zh.md": "model_card_research.zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#]+)((?:#[^)\s]*)?)\)")
_OTHER_LANGUAGE = re.compile(r"^\[(中文|English)\]\([^)]*\)\n\n", re.M)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    sources = {f"docs/{path.relative_to(PAGES).as_posix()}": path for path in PAGES.rglob("*.md")}
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        page = PAGES / "notebooks" / f"{notebook.stem}.md"
        text, pictures = notebook_page(notebook)
        page.write_text(text, encoding="utf-8")
        for name, picture in pictures.items():
            (page.parent / name).write_text(picture, encoding="utf-8")
    for name, in_chinese in (("commands.md", False), ("commands.zh.md", True)):
        (PAGES / "reference" / name).write_text(commands_page(in_chinese=in_chinese), encoding="utf-8")
    sources |= {source: PAGES / page for source, page in ELSEWHERE.items()}
    for source, page in sources.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        page.write_text(for_the_site(text, source, page.relative_to(PAGES).as_posix()), encoding="utf-8")
    config.docs_dir = str(PAGES)
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")  # Chinese headings have Chinese anchors, as on GitHub
    return config


def for_the_site(text: str, source: str, page: str) -> str:
    """The text of a file of the repository, with the links that lead to other pages of the site from `page`.

    A link to a file that is no page names the file. Links to the same page in the other language go, since the site has
    a button for that.
    """

    def on_site(link: re.Match[str]) -> str:
        shown, target, anchor = link.groups()
        if "://" in target:
            return link[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if file not in ELSEWHERE and not file.startswith("docs/"):
            return f"`{file}`" if shown == file else f"{shown} (`{file}`)"
        to = ELSEWHERE.get(file) or file.removeprefix("docs/")
        return f"[{shown}]({os.path.relpath(to, posixpath.dirname(page) or '.')}{anchor})"

    return unbroken(_LINK.sub(on_site, _OTHER_LANGUAGE.sub("", text)))


def notebook_page(notebook: Path) -> tuple[str, dict[str, str]]:
    """The cells of a notebook and what they show as Markdown, and its pictures as SVG by the name of their file."""
    parts, pictures = [], {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            shown = {"text/plain": output["text"]} if output["output_type"] == "stream" else output["data"]
            if "image/svg+xml" in shown:
                name = f"{notebook.stem}-{len(pictures) + 1}.svg"
                pictures[name] = "".join(shown["image/svg+xml"])
                parts.append(f"![What the cell above draws]({name})")
            else:
                parts.append("```text\n" + "".join(shown["text/plain"]).rstrip("\n") + "\n```")
    title, *rest = parts
    return "\n\n".join([title, f"[Download this notebook]({notebook.name})", *rest]) + "\n", pictures
