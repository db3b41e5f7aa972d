"""The list of source files in docs/source_files.md: each file and the first sentence of its docstring.

python tests/docs/source_list.py --write     # after adding, removing or renaming a file
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "source_files.md"
START, END = "<!-- files: python tests/docs/source_list.py --write -->\n", "<!-- end of files -->"
C = (".c", ".h")
FOLDERS = [
    ".",
    "text",
    "folders",
    "recipes",
    "instruction_sets",
    "lexicon",
    "lattice",
    "data",
    "drawing",
    "nn",
    "entities",
    "models",
    "tagging",
    "engine",
    "runtime",
    "explain",
    "training",
    "reports",
    "serving",
    "bulk",
    "distant",
    "suggest",
    "integrations",
    "leaderboard",
    "commands",
    "lattice_bert",
]


def lines() -> list[str]:
    """One Markdown line per file: Python by docstring, C by the first sentence of its opening comment."""
    source = ROOT / "src" / "cige"
    files = sorted(file for suffix in ("py", "c", "h") for file in source.rglob(f"*.{suffix}"))

    def place(file: Path) -> int:
        parent = file.relative_to(source).parent
        return FOLDERS.index(parent.parts[0] if parent.parts else ".")

    return [f"- `{file.relative_to(source).as_posix()}` {first_sentence(file)}\n" for file in sorted(files, key=place)]


def first_sentence(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    if file.suffix in C:
        opening = text.partition("/*")[2].partition("*/")[0]
    else:
        opening = ast.get_docstring(ast.parse(text)) or ""
    paragraph = " ".join(opening.strip().split("\n\n")[0].split())
    return (
        re.split(r"(?<=[.:])(?<!Eq.)\s", paragraph + " ", maxsplit=1)[0].strip().rstrip(":")
        if file.suffix in C
        else paragraph
    )


def expected(page: str) -> str:
    head, _, rest = page.partition(START)
    return head + START + "".join(lines()) + END + rest.partition(END)[2]


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(expected(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
