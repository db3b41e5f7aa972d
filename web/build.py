"""Build the folder that finds entities in a browser: `python web/build.py [OUT] [--model FOLDER]`.

It holds the compiled runtime (cige.wasm), the tables and patterns by which texts are read (rules.json), the scripts and
page beside this file, and the model. What is large is compressed here, with .gz behind its name, and decompressed in
the page, so it does not matter whether a server compresses what it sends. Any server of static files will do
(`python -m http.server --directory OUT`); nothing is loaded from elsewhere, and once it has been opened the page needs
no network.

The C sources are those of the package. The compiler is clang as the package ziglang carries it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cige
from cige.drawing.colours import colour_of
from cige.errors import CigeError, ModelError
from cige.folders.hub import model_folder
from cige.folders.kinds import TAGGER
from cige.folders.manifest import read_manifest
from cige.lattice.lattice import MAX_WORDS_PER_CHAR
from cige.lexicon.word_rules import MAX_WORD_CHARS
from cige.tagging import edges
from cige.tagging.windows import HALF_COMMA, READ_SPACE_AS, SENTENCE_MARK, SET_APART_BY
from cige.text import cells, closed, normalize, windows

sys.path.insert(0, str(Path(__file__).parent))
from pack_model import write_gzip, write_packed_model

HERE, PACKAGE = Path(__file__).parent, Path(cige.__file__).parent
OUT = HERE.parent / "build" / "web"
PAGE_FILES = ("*.js", "*.html", "package.json")
WORKERS = ("sw.js", "worker.js")  # what keeps all other files in the browser, and what fetches the model
RUNTIME = "cige.wasm"
COPIED = ("manifest.json", "lexicon/manifest.json", "lexicon/user.json")  # of a model folder, besides its arrays
SOURCES = (
    *(f"runtime/native/{name}.c" for name in ("product", "product_bf16", "product_int8", "product_avxvnni")),
    *(f"runtime/native/{name}.c" for name in ("attention", "attention_bf16", "attention_int16", "flat", "chain")),
    *(f"runtime/native/{name}.c" for name in ("lengths", "marginals", "rules", "rows", "spans", "layout")),
    "runtime/native/check_model.c",
    "lexicon/trie.c",
)
EXPORTED = (
    *("malloc", "free", "panel_width", "one_product", "fill_codes", "rows_of_lattices"),
    *("look_up_rows", "read_lattices", "find_words", "free_words", "layout_of_structs", "check_model"),
)
FLAGS = (
    *("--target=wasm32-wasi", "-mexec-model=reactor", "-msimd128", "-O3", "-std=gnu11"),
    *("-fno-fast-math", "-fno-trapping-math", "-Wl,--strip-all", "-Wl,-z,stack-size=1048576"),
)


def build(out: Path, model: str | None = None) -> None:
    """Write the folder `out`; what was there of an earlier build is replaced.

    Args:
        model: a tagger's folder or hub id; None for the bundled model.

    Raises:
        ModelError: the model is no tagger, or the compiler is missing or failed.
    """
    folder = model_folder(model)
    facts = read_manifest(folder, kind=TAGGER, version=1, error=ModelError)
    config = facts.get("config") or {}
    if facts.get("architecture") != "flat" or config.get("bert") or config.get("components"):
        has_components = " with components of characters" if config.get("components") else ""
        raise ModelError(
            f"{folder}: architecture {facts.get('architecture')!r}{has_components}; a browser reads FLAT "
            "without BERT and without components"
        )
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as made:
        compile_runtime(Path(made) / RUNTIME)
        write_gzip(out / RUNTIME, (Path(made) / RUNTIME).read_bytes())
    write_gzip(out / "rules.json", json.dumps(rules(), ensure_ascii=True).encode())
    for pattern in PAGE_FILES:
        for path in HERE.glob(pattern):
            shutil.copyfile(path, out / path.name)
    shutil.rmtree(out / "model", ignore_errors=True)
    (out / "model" / "lexicon").mkdir(parents=True)
    write_packed_model(folder, out / "model")
    for name in COPIED:
        write_gzip(out / "model" / name, (folder / name).read_bytes())
    terms = (HERE.parent / "LICENSE", folder / "MODEL_CARD.md", folder / "MODEL_CARD.zh.md")  # of code and weights
    for path in terms:
        if path.is_file():
            shutil.copyfile(path, out / path.name)
    (out / "page.css").write_text(_page_style(), encoding="utf-8")
    colours = {label: colour_of(label) for label in facts["labels"]}
    megabytes = round(sum(path.stat().st_size for path in _kept_files(out)) / 1e6)
    (out / "page.json").write_text(json.dumps({"colours": colours, "megabytes": megabytes}), encoding="utf-8")
    _list_kept_files(out)


def _page_style() -> str:
    """The style of the page that `cige serve` shows."""
    page = files("cige.serving").joinpath("page.html").read_text(encoding="utf-8")
    found = re.search(r"<style>\n(.*?)</style>", page, re.DOTALL)
    assert found is not None
    return found[1]


def _kept_files(out: Path) -> list[Path]:
    """What the service worker keeps in the browser, in the order of the names."""
    written = ("*.js", "*.json", "*.css", "*.gz", "index.html", "model/*.*", "model/lexicon/*")
    found = (path for pattern in written for path in out.glob(pattern))
    return sorted(path for path in found if path.name not in ("sw.js", "package.json"))


def _list_kept_files(out: Path) -> None:
    """Tell the workers of `out` which files there are, and a version that changes with any of them."""
    kept, digest = _kept_files(out), hashlib.sha256()
    for path in kept:
        digest.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    names = ["./" if path.name == "index.html" else path.relative_to(out).as_posix() for path in kept]
    values = {'/*VERSION*/ ""': digest.hexdigest()[:16], "/*FILES*/ []": names}
    for worker, marks in zip(WORKERS, (values, ['/*VERSION*/ ""']), strict=True):
        text = (out / worker).read_text(encoding="utf-8")
        for mark in marks:
            assert text.count(mark) == 1, mark
            text = text.replace(mark, json.dumps(values[mark]))
        (out / worker).write_text(text, encoding="utf-8")


def compile_runtime(to: Path) -> None:
    """Raises ModelError where there is no compiler, or with what it says."""
    if find_spec("ziglang") is None:
        raise ModelError("compiling to WebAssembly needs the package ziglang; pip install 'cige[web]'")
    command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, *(f"-Wl,--export={name}" for name in EXPORTED)]
    done = subprocess.run(
        [*command, *(str(PACKAGE / source) for source in SOURCES), "-o", str(to)], capture_output=True, text=True
    )
    if done.returncode:
        raise ModelError(f"{to.name}: the compiler failed; {done.stderr.strip()[-2000:]}")


def rules() -> dict[str, Any]:
    """What text.js reads of cige.text and cige.tagging: sets of characters, patterns and numbers."""
    return {
        "width": _pairs(normalize.WIDTH),
        "simplified": _pairs(normalize.SIMPLIFIED | normalize.UNIFIED | normalize.SUBSCRIPTS),
        "marks": _pairs(normalize.MARKS),
        "invisible": "".join(sorted(normalize.INVISIBLE)),
        "space": ranges(str.isspace),
        "spacer": ranges(lambda char: unicodedata.category(char) == "Zs"),
        "alphabetic": ranges(cells.is_alphabetic),
        "outside": ranges(edges.is_outside_names),
        "closed": [javascript(pattern) for pattern in closed.PATTERNS],
        "sign": javascript(closed.SIGN.pattern),
        "cuts": [cut._asdict() | {"end": javascript(cut.end.pattern)} for cut in windows.CUTS],
        "quoted": javascript(windows.QUOTED.pattern),
        "max_quoted": windows.MAX_QUOTED,
        "max_word": windows.MAX_WORD,
        "abbreviation": javascript(edges.ABBREVIATION.pattern),
        "closer_of": edges.CLOSER_OF,
        "half_width": _pairs(edges.HALF_WIDTH),
        "either": "".join(sorted(edges.EITHER)),
        "kept_last": "".join(sorted(edges.KEPT_LAST)),
        "line_breaks": cells.LINE_BREAKS,
        "commas": "".join(sorted(cells.COMMAS)),
        "read_space_as": READ_SPACE_AS,
        "set_apart_by": SET_APART_BY,
        "half_comma": javascript(HALF_COMMA.pattern),
        "sentence_mark": javascript(SENTENCE_MARK.pattern),
        "whole": windows.WHOLE,
        "core": windows.CORE,
        "context": windows.CONTEXT,
        "max_words_per_char": MAX_WORDS_PER_CHAR,
        "max_word_chars": MAX_WORD_CHARS,
    }


def _pairs(chars: dict[str, str]) -> list[list[int]]:
    return [[ord(a), ord(b)] for a, b in sorted(chars.items())]


def ranges(belongs: Callable[[str], bool]) -> list[int]:
    """The code points whose characters belong, as [a0, b0, a1, b1, ...], both ends included."""
    found: list[int] = []
    for code in range(sys.maxunicode + 1):
        if belongs(chr(code)):
            if found and found[-1] == code - 1:
                found[-1] = code
            else:
                found += [code, code]
    return found


def javascript(pattern: str) -> str:
    r"""A pattern of Python's `re` as JavaScript's with the flag u, where \s and \w are what they are in Python.

    Raises:
        ValueError: the pattern has an escape that has not been thought of.
    """
    return "".join(_translated(pattern))


def _translated(pattern: str) -> Iterator[str]:
    in_class, place = False, 0
    while place < len(pattern):
        char, escape = pattern[place], pattern[place : place + 2]
        if pattern.startswith(r"[^\W", place):  # letters and digits but for what follows
            end = pattern.index("]", place)
            yield f"(?:(?![{pattern[place + 4 : end]}])[{_inside('w')}])"
            place = end + 1
        elif char != "\\":
            in_class = (in_class or char == "[") and char != "]"
            yield char
            place += 1
        elif escape[1] in "sw":
            yield _inside(escape[1]) if in_class else f"[{_inside(escape[1])}]"
            place += 2
        elif escape[1].isalnum() and escape[1] not in "nxu":
            raise ValueError(f"{pattern!r}: no form of {escape!r} in JavaScript")
        else:
            yield escape
            place += 2


@cache
def _inside(name: str) -> str:
    r"""What stands in a class for \s or \w."""
    bounds = ranges(lambda char: re.match(rf"\{name}", char) is not None)
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    return "".join(f"\\u{{{a:x}}}" + (f"-\\u{{{b:x}}}" if b > a else "") for a, b in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, nargs="?", default=OUT, help="the folder to write (default: build/web)")
    parser.add_argument("--model", help="a model folder or hub id; without it the bundled model")
    given = parser.parse_args()
    try:
        build(given.out, given.model)
    except CigeError as reason:
        print(f"web/build.py: {reason}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in _kept_files(given.out))
    runtime = (given.out / f"{RUNTIME}.gz").stat().st_size
    print(f"{given.out}: a browser fetches {size / 1e6:.1f} MB, of which the runtime is {runtime / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
