"""Measure the speed and the accuracy of cige, and what it does under stress.

  python -m benchmarks NAME --help       the options of a benchmark
  python -m benchmarks NAME --json FILE  write its result as JSON

A benchmark is a module of benchmarks/speed, benchmarks/accuracy or benchmarks/stress:

  bench     its function. The arguments are the options (see command.py). It returns the result as a mapping that JSON
            can hold, or yields the result again and again as it grows, or the rows of its first table.
  TABLES    key of the result -> title of the table that shows its rows; the title may name other keys in braces.
  FLAT      whether machine and versions stand beside the other keys, and not under "environment".
  failed    says of a result whether the command ends with 1; by default it does if the result counts `faults`.
"""

import ast
import difflib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.command import options_of, parser_of
from cige.errors import CigeError
from cige.extras import reason_of

HERE = Path(__file__).parent
FOLDERS = ("speed", "accuracy", "stress")


def benchmarks() -> dict[str, Path]:
    """The file of each benchmark by its name."""
    files = [path for folder in FOLDERS for path in sorted((HERE / folder).glob("[!_]*.py"))]
    return {path.stem: path for path in (*files, HERE / "figures.py")}


def overview(found: Mapping[str, Path]) -> Iterator[str]:
    """A line for each benchmark: its name and the first line of its docstring, which is not imported for it."""
    folder = ""
    for name, path in found.items():
        if path.parent.name != folder:
            folder = path.parent.name
            yield f"\n{folder if folder in FOLDERS else 'drawings'}:"
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        yield f"  {name:<{max(map(len, found))}}  {doc.partition(chr(10))[0]}"


def run(name: str, path: Path, argv: Sequence[str]) -> int:
    """Run one benchmark with its options; show its tables, and write its result if a file was asked for."""
    parts = path.relative_to(HERE.parent).with_suffix("").parts
    module = import_module(".".join(parts))
    tables: dict[str, str] = getattr(module, "TABLES", {})
    parser = parser_of(module.bench, prog=f"python -m benchmarks {name}", description=module.__doc__)
    options = options_of(module.bench)
    if inspect.signature(module.bench).return_annotation is not None and "json" not in options:
        parser.add_argument("--json", metavar="FILE", help="write the result to this file")
    given = vars(parser.parse_args(argv))
    file = given.get("json") if "json" in options else given.pop("json", None)
    asked = options | given
    if "threads" in asked:
        measure.use_threads(asked["threads"])
    environment = measure.environment(
        threads=asked.get("threads", 1), n_rounds=asked.get("rounds", 1), device=asked.get("device", "cpu")
    )
    facts: dict[str, Any] = environment if getattr(module, "FLAT", False) else {"environment": environment}
    found = module.bench(**given)
    if found is None:
        return 0
    rows: list[Mapping[str, Any]] = []
    result: dict[str, Any] = {}
    items: Iterable[dict[str, Any]] = [dict(found)] if isinstance(found, Mapping) else found
    for item in items:
        if not isinstance(found, Mapping) and tables.keys().isdisjoint(item):
            rows.append(item)
            print(measure.line(item), flush=True)
            item = {next(iter(tables)): rows}
        result = facts | item
        measure.write(result, file)
    for key, title in tables.items():
        if shown := result.get(key):
            measure.report(title.format_map(result), [shown] if isinstance(shown, Mapping) else shown)
    return int(module.failed(result) if hasattr(module, "failed") else result.get("faults", 0) > 0)


def main(argv: Sequence[str]) -> int:
    found = benchmarks()
    name = argv[0].replace("-", "_") if argv else "__help"
    if name in found:
        try:
            return run(name, found[name], argv[1:])
        except CigeError as error:
            print(f"benchmarks {name}: {error}", file=sys.stderr)
            return 2
        except ModuleNotFoundError as error:
            reason = reason_of(f"python -m benchmarks {name}", error)
            if reason is None:
                raise
            print(f"benchmarks: {reason}", file=sys.stderr)
            return 2
    if name.startswith("__"):
        print(__doc__.partition("A benchmark is")[0].strip(), *overview(found), sep="\n")
        return 0
    near = difflib.get_close_matches(name, found, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    print(f"benchmarks: unknown name {argv[0]!r}; `python -m benchmarks` lists them{hint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
