"""The command line of a benchmark is the signature of its function, and a result is shown and written."""

import inspect
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import pytest

import benchmarks
from benchmarks import __main__ as main
from benchmarks.command import HELP, options_of, parser_of

ROOT = Path(benchmarks.__file__).parents[1]
NAMES = list(main.benchmarks())


def example(
    corpus: Path,
    *,
    data_dir: Path,
    sizes: Annotated[Sequence[int], "of something"] = (1, 2),
    kind: Annotated[str, ("a", "b"), "of thing"] = "a",
    fast: bool = False,
    with_f1: bool = True,
    model: str | None = None,
    rounds: int = 3,
) -> None:
    """An example."""


def parsed(*argv: str) -> dict:
    return vars(parser_of(example, prog="x", description=None).parse_args(argv))


def test_only_what_is_given_is_passed_on(monkeypatch):
    monkeypatch.setenv("CIGE_DATA", "/data")
    assert parsed("c.txt") == {"corpus": Path("c.txt"), "data_dir": Path("/data")}
    given = parsed("c", "--sizes", "5", "6", "--sizes", "7", "--kind", "b", "--fast", "--no-with-f1", "--model", "m")
    assert given["sizes"] == [5, 6, 7] and given["kind"] == "b" and given["fast"] and not given["with_f1"]
    assert given["model"] == "m" and "rounds" not in given and parsed("c", "--rounds", "9")["rounds"] == 9


@pytest.mark.parametrize(
    ("argv", "told"),
    [(["--kind", "c"], "expected one of a, b"), (["--rounds", "x"], "invalid int value"), ([], "--data-dir")],
)
def test_what_does_not_fit_is_told(argv, told, monkeypatch, capsys):
    monkeypatch.setenv("CIGE_DATA", "/data")
    if not argv:
        monkeypatch.delenv("CIGE_DATA")
    with pytest.raises(SystemExit):
        parsed("c", *argv)
    assert told in capsys.readouterr().err


def test_help_has_the_words_of_the_function_and_its_defaults(monkeypatch):
    monkeypatch.delenv("CIGE_DATA", raising=False)
    shown = " ".join(parser_of(example, prog="x", description="What it does.").format_help().split())
    assert "of something (default: 1 2)" in shown and "of thing (default: a)" in shown
    assert f"{HELP['rounds']} (default: 3)" in shown and "What it does." in shown and "--kind {a,b}" in shown


def test_every_benchmark_is_listed_by_the_first_line_of_its_docstring(capsys):
    assert main.main([]) == 0
    out = capsys.readouterr().out
    for name, path in main.benchmarks().items():
        first = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix('"""')
        assert f"  {name} " in out and first.removesuffix('"""') in out
        assert first.removesuffix('"""').endswith("."), f"{path}: the first line is not a sentence"


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_explained(name):
    path = main.benchmarks()[name]
    relative = path.relative_to(ROOT).with_suffix("")
    try:
        module = import_module(".".join(relative.parts))
    except ModuleNotFoundError as reason:
        pytest.skip(str(reason))
    assert all(p.kind is not p.VAR_KEYWORD for p in inspect.signature(module.bench).parameters.values())
    parser = parser_of(module.bench, prog=name, description=module.__doc__)
    for action in parser._actions:
        assert action.help and action.help[0] != " ", f"{name}: {action.dest} has no help"
    assert options_of(module.bench).keys() <= {action.dest for action in parser._actions}


def printed_commands() -> dict[str, list[str]]:
    """The benchmarks that pages and cards name with options: name -> its commands."""
    found: dict[str, list[str]] = {}
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/cige/bundled*/*.md")):
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        spans = re.findall(r"`[^`\n]*python -m[ \n]benchmarks\b([^`]*)`", text)
        for options in (*spans, *re.findall(r"^[A-Z_=1 ]*python -m benchmarks (.*)$", text, re.MULTILINE)):
            if options.strip() and page.name != "CHANGELOG.md":
                found.setdefault(options.split()[0], []).append(" ".join(options.split()[1:]))
    return found


@pytest.mark.parametrize(("name", "commands"), printed_commands().items())
def test_the_commands_of_the_pages_can_be_parsed(name, commands, monkeypatch):
    monkeypatch.setenv("CIGE_DATA", "data")
    assert name in NAMES or name == "NAME", f"{name} is no benchmark"
    for options in (x for x in commands if " " in x):  # others name a benchmark, or one of its options
        path = main.benchmarks()[name].relative_to(ROOT).with_suffix("")
        try:
            module = import_module(".".join(path.parts))
        except ModuleNotFoundError as reason:
            pytest.skip(str(reason))
        parser = parser_of(module.bench, prog=name, description=None)
        if "json" not in options_of(module.bench):
            parser.add_argument("--json")
        values = [re.sub(r"^(?:[A-Z]+|速率)$", "1", word) for word in shlex.split(options, comments=True)]
        assert parser.parse_args(values), options


def test_an_unknown_name_is_told(capsys):
    assert main.main(["latice"]) == 2
    assert "did you mean lattice?" in capsys.readouterr().err


@pytest.fixture
def of_module(monkeypatch):
    def run(*argv: str, **members) -> int:
        monkeypatch.setattr(main, "import_module", lambda name: SimpleNamespace(__doc__="x", **members))
        return main.run("x", main.HERE / "speed" / "x.py", argv)

    return run


def test_rows_are_written_as_they_come(of_module, tmp_path, capsys):
    file = tmp_path / "found.json"

    def bench(*, rounds: int = 2):
        for k in range(rounds):
            yield {"k": k}
            assert len(json.loads(file.read_text(encoding="utf-8"))["cases"]) == k + 1

    options = {"bench": bench, "TABLES": {"cases": "of {n_cores} cores"}, "FLAT": True}
    assert of_module("--json", str(file), "--rounds", "3", **options) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["cases"] == [{"k": 0}, {"k": 1}, {"k": 2}] and found["rounds"] == 3
    assert f"of {found['n_cores']} cores" in capsys.readouterr().out


def test_a_result_has_its_facts_and_says_whether_it_failed(of_module, tmp_path):
    file = tmp_path / "found.json"

    def bench(*, threads: int = 1):
        return {"faults": 2, "none": []}

    options = {"bench": bench, "TABLES": {"none": "nothing"}, "failed": lambda result: result["faults"] > 1}
    assert of_module("--json", str(file), **options) == 1
    assert json.loads(file.read_text(encoding="utf-8"))["environment"]["threads"] == 1


def test_it_starts_from_the_source_tree():
    command = [sys.executable, "-m", "benchmarks", "significance", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "--uneven" in done.stdout, done.stderr


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch, capsys):
    def missing(*_: object) -> int:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(main, "run", missing)
    assert main.main(["flat"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "`python -m benchmarks flat` needs torch" in error and "[train]" in error
