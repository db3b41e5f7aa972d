"""The code on the pages of the site: it is run in the order of its page, and what it prints stands under it.

python tests/docs/page_code.py --write [PAGE ...]     # run pages again and write what their code prints now

A block of Python runs statement by statement; what a statement prints follows it in lines that begin with `#> `. A
block of shell runs `cige` in this process, with `> FILE` where the page has it, and `python FILE.py`; output follows
where the page shows any. A block whose first line is a comment that names a file (`# words.txt`) is written to that
file. All blocks of a page share one folder. A block after the comment `<!-- not run: REASON -->` is only compiled, or
its commands parsed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cige

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OUTPUT = "#>"
_BLOCK = re.compile(r"(<!-- not run: (?P<reason>[^>]+) -->\n+)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S)
_FILE = re.compile(r"# (?P<name>[\w.-]+\.(py|yaml|txt|jsonl|bmes|csv|vec))$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its code, where the code stands in the page, and whether it is run."""

    language: str
    code: str
    start: int
    end: int
    is_run: bool


def site_pages() -> list[str]:
    """The pages, by path in docs/, whose code this module runs: those that have or need a Chinese twin."""
    folders = [DOCS / "how-to", DOCS / "concepts"]
    pages = [page for folder in folders for page in folder.glob("*.md") if not page.name.endswith(".zh.md")]
    pages += [DOCS / name for name in ("index.md", "start.md", "faq.md")]
    return sorted(page.relative_to(DOCS).as_posix() for page in pages)


def twin(page: str) -> str:
    """The Chinese page of an English one."""
    return page.removesuffix(".md") + ".zh.md"


def blocks(text: str) -> list[Block]:
    return [
        Block(found["language"], found["code"], found.start("code"), found.end("code"), found["reason"] is None)
        for found in _BLOCK.finditer(text)
    ]


def run_page(text: str) -> str:
    """Run the code of a page in the working folder; returns the page with what its code prints now."""
    names: dict[str, object] = {"__name__": "__main__"}
    parts, done = [], 0
    for block in blocks(text):
        parts += [text[done : block.start], _run_block(block, names)]
        done = block.end
    return "".join(parts) + text[done:]


def _run_block(block: Block, names: dict[str, object]) -> str:
    code = block.code
    file = _FILE.match(code.splitlines()[0])
    if block.is_run and file:
        Path(file["name"]).write_text(code.partition("\n")[2], encoding="utf-8")
        return code
    if block.language == "python":
        return _run_python(code, names) if block.is_run else (compile(code, "page", "exec") and code)
    if block.language == "sh":
        return "".join(_run_shell(code)) if block.is_run else (_parse(code) or code)
    return code


def _run_python(code: str, names: dict[str, object]) -> str:
    lines = [line for line in code.splitlines() if not line.startswith(OUTPUT)]
    source = "\n".join(lines) + "\n"
    shown, done = [], 0
    for statement in ast.parse(source).body:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module([statement], []), "page", "exec"), names)
        assert statement.end_lineno is not None
        shown += lines[done : statement.end_lineno]
        shown += [f"{OUTPUT} {line}".rstrip() for line in printed.getvalue().splitlines()]
        done = statement.end_lineno
    return "\n".join([*shown, *lines[done:]]) + "\n"


def commands(code: str) -> Iterator[tuple[str, bool]]:
    """The logical lines of a block of shell, as they stand, and whether output is shown under each."""
    lines = code.replace("\\\n", "\0").splitlines()
    for number, line in enumerate(lines):
        if not line.startswith(OUTPUT):
            follows = lines[number + 1] if number + 1 < len(lines) else ""
            yield line.replace("\0", "\\\n"), follows.startswith(OUTPUT)


def _run_shell(code: str) -> Iterator[str]:
    from cige.cli import main

    for line, is_shown in commands(code):
        yield line + "\n"
        words = shlex.split(line, comments=True)
        if not words:
            continue
        assert words[0] in ("cige", "python"), f"only cige and python are run, so mark the block `not run`: {line}"
        target = words[words.index(">") + 1] if ">" in words else None
        arguments = words[1 : words.index(">")] if target else words[1:]
        if words[0] == "python":
            ran = subprocess.run(
                [sys.executable, *arguments], capture_output=True, encoding="utf-8", env=_environment()
            )
            status, printed = ran.returncode, ran.stdout
            assert status == 0, f"{line}: exit code {status}\n{ran.stderr}"
        else:
            with contextlib.redirect_stdout(io.StringIO()) as caught:
                status = main(arguments)
            printed = caught.getvalue()
            assert status == 0, f"{line}: exit code {status}\n{printed}"
        if target:
            Path(target).write_text(printed, encoding="utf-8")
        if is_shown:
            yield from (f"{OUTPUT} {shown}".rstrip() + "\n" for shown in printed.splitlines())


def _environment() -> dict[str, str]:
    """The environment of this process, in which `import cige` finds what this process found."""
    source = str(Path(cige.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))}


def _parse(code: str) -> None:
    from cige.cli import VERBS, command_of

    for line, _ in commands(code):
        words = shlex.split(line, comments=True)
        if words and words[0] == "cige":
            assert words[1] in VERBS, line
            parser = argparse.ArgumentParser(exit_on_error=False)
            command_of(words[1]).add_arguments(parser)
            parser.parse_args(words[2 : words.index(">") if ">" in words else None])


def without_comments(block: Block) -> tuple[str, ...]:
    """The code of a block without comments, which are in the language of their page; output stays."""
    if block.language == "python":
        tokens = tokenize.generate_tokens(io.StringIO(block.code).readline)
        skipped = (tokenize.NL, tokenize.NEWLINE)
        return tuple(
            token.string
            for token in tokens
            if token.type not in skipped and (token.type != tokenize.COMMENT or token.string.startswith(OUTPUT))
        )
    lines = (line if line.startswith(OUTPUT) else re.sub(r"(^|\s+)#.*", "", line) for line in block.code.splitlines())
    return (block.language, str(block.is_run), *(line for line in lines if line))


def main() -> None:
    given = [argument for argument in sys.argv[1:] if argument != "--write"]
    for page in given or site_pages():
        path = DOCS / page
        text = path.read_text(encoding="utf-8")
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            now = run_page(text)
            os.chdir(here)
        path.write_text(now, encoding="utf-8")
        print(page, "as it was" if now == text else "changed")
        copy_output(page)


def copy_output(page: str) -> None:
    """Put the output of a page into its Chinese twin, whose code is the same."""
    path = DOCS / twin(page)
    if not path.exists():
        return
    own = blocks((DOCS / page).read_text(encoding="utf-8"))
    text = path.read_text(encoding="utf-8")
    theirs = blocks(text)
    parts, done = [], 0
    for block, source in zip(theirs, own, strict=True):
        parts += [text[done : block.start], _with_output(block.code, source.code)]
        done = block.end
    path.write_text("".join(parts) + text[done:], encoding="utf-8")


def _with_output(code: str, source: str) -> str:
    """`code` with the output lines of `source`, each after as many lines of code as there (comments are no lines)."""

    def is_code(line: str) -> bool:
        return not line.startswith("#") and bool(line.strip())

    output: dict[int, list[str]] = {}
    n_lines = 0
    for line in source.splitlines():
        if line.startswith(OUTPUT):
            output.setdefault(n_lines, []).append(line)
        else:
            n_lines += is_code(line)
    shown, n_lines = [], 0
    for line in code.splitlines():
        if not line.startswith(OUTPUT):
            shown.append(line)
            if is_code(line):
                n_lines += 1
                shown += output.get(n_lines, [])
    return "\n".join(shown) + "\n"


if __name__ == "__main__":
    main()
