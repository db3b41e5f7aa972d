"""The shape of the package: folders import only leftwards, and light parts stay light."""

import ast
import inspect
import re
import subprocess
import sys
import typing
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from source_modules import MODULES, SOURCE

import cige
from cige.extensions import PACKAGES
from cige.lexicon.names_list import NamesList
from cige.lexicon.report import LoadReport

# From the ground up; folders on one floor do not import one another.
LAYERS = [
    {"json_text", "public_names", "extensions"},
    {"extras"},
    {"errors"},
    {"text", "folders", "instruction_sets"},
    {"lexicon", "recipes"},
    {"lattice"},
    {"data", "drawing"},
    {"nn", "entities"},
    {"models", "tagging"},
    {"engine", "runtime", "explain"},
    {"training", "api"},
    {"reports", "serving", "bulk", "distant", "suggest", "integrations"},
    {"leaderboard"},
    {"commands"},
    {"lattice_bert"},
    {"cli"},
    {"__main__"},
]
STILL_SIDEWAYS: set[tuple[str, str]] = set()
LAYER_OF = {name: k for k, names in enumerate(LAYERS) for name in names}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def import_statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    return tuple(node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import | ast.ImportFrom))


@cache
def imported(path: Path) -> frozenset[str]:
    """Every module of cige that a file imports anywhere, in functions and for type checking too."""
    found = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "cige" else set()
    return frozenset(name for name in found if name.startswith("cige."))


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down(path):
    assert part(path) in LAYER_OF, f"give {part(path)} a place in LAYERS"
    for name in imported(path) - {"cige.__version__"}:
        target = name.split(".")[1]
        is_below = target == part(path) or LAYER_OF[target] < LAYER_OF[part(path)]
        assert is_below, f"{path} imports {name}, which is not below it"


def test_nothing_imports_an_extension():
    """Only cige.extensions names one, as a string: the rest of cige works without it."""
    name = re.compile(r"\blattice_bert\b")
    for path in MODULES:
        if part(path) != "lattice_bert":
            assert not {module for module in imported(path) if module.startswith("cige.lattice_bert")}, path
            names_it = name.search(path.read_text(encoding="utf-8")) is not None
            assert names_it == (path == SOURCE / "extensions.py"), path
    assert PACKAGES == ("cige.lattice_bert",)


def test_no_circles_among_modules():
    known = {module_name(path) for path in MODULES}
    graph = {module_name(path): modules_imported(path, known) for path in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))


def module_name(path: Path) -> str:
    return ".".join(["cige", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")


def modules_imported(path: Path, known: set[str]) -> set[str]:
    """Those of `known` that a file imports, a name counting as the module that it is or is in; itself left out."""
    found = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else str(node.module) for name in names}
    return (found & known) - {module_name(path)}


def test_little_is_loose_at_the_top():
    loose = {p.name for p in SOURCE.glob("*.py")} - {"__init__.py", "__main__.py", "cli.py", "api.py"}
    assert len(loose) <= 5, loose


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_are_short_and_say_what_they_are(path):
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) < 400
    assert ast.get_docstring(parsed(path)), f"{path} has no docstring"


def modules_after(code: str) -> set[str]:
    return set().union(*modules_after_each(code))


def modules_after_each(code: str) -> list[set[str]]:
    """What is loaded after the code, and the words of each line that the code prints before it."""
    code += "; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "code",
    [
        "import cige",
        "from cige import Lexicon, Lattice, Entity, Sentence, read_sentences, draw_lattice",
        "import cige.data.registry, cige.data.stats, cige.entities.scores",
        "from cige.cli import main; main(['--help'])",
        "from cige.cli import main; main(['lexicon', 'match', '南京', '--lexicon', 'no such folder'])",
    ],
)
def test_needs_no_torch(code):
    loaded = modules_after(code)
    assert "cige" in loaded
    assert not loaded & {"torch", "transformers", "huggingface_hub", "gensim", "optuna"}


def test_training_needs_no_transformers_and_reading_no_accelerate():
    """In one process: what reading loads, and then what training loads besides."""
    code = "import cige.api, sys; print(*sys.modules); import cige.training.train"
    after_reading, after_training = modules_after_each(code)
    assert "cige.api" in after_reading and not after_reading & {"accelerate", "cige.engine.trainer"}
    assert "cige.engine.trainer" in after_training and "transformers" not in after_training


def test_import_cige_loads_next_to_nothing():
    assert {m for m in modules_after("import cige") if m.startswith("cige")} == {"cige"}


def test_a_text_is_read_without_what_reads_files_of_words_threads_and_nested_entities():
    """Together, these took a tenth of the time from the start of a process to its first entity."""
    loaded = modules_after("import cige; cige.load(n_threads=1)('普京在北京')")
    not_needed = {"csv", "gzip", "lzma", "concurrent.futures", "logging"}
    not_needed |= {"cige.lexicon.words_file", "cige.lexicon.report", "cige.tagging.pair_grid"}
    assert "cige.runtime.native_model" in loaded and not loaded & not_needed


def test_every_public_name_is_there():
    for name in cige.__all__:
        assert getattr(cige, name).__module__.startswith("cige.")
        assert name in dir(cige)
    assert cige.__version__
    with pytest.raises(AttributeError, match="no attribute 'Loed'"):
        _ = cige.Loed


def functions_of(thing: Any) -> list[Any]:
    """The function itself, or the methods, properties and constructor of a class that users call."""
    if not inspect.isclass(thing):
        return [thing]
    kept = ("__init__", "__call__")
    found = [value for name, value in inspect.getmembers(thing) if name in kept or not name.startswith("_")]
    found = [value.fget if isinstance(value, property) else value for value in found]
    return [value for value in found if inspect.isfunction(value) or inspect.ismethod(value)]


@pytest.mark.parametrize("thing", [*(getattr(cige, name) for name in cige.__all__), LoadReport, NamesList])
def test_type_hints_of_public_names_can_be_resolved(thing):
    """Tools that read signatures at run time, such as pydantic, need the names in them to be there."""
    for part in {thing, *functions_of(thing)}:
        typing.get_type_hints(part)


@pytest.mark.parametrize("thing", [getattr(cige, name) for name in cige.__all__])
def test_public_functions_have_docstrings(thing):
    """The reference leaves out methods and properties that have none."""
    assert inspect.getdoc(thing)
    assert [part.__qualname__ for part in functions_of(thing) if not part.__doc__ and part.__name__ != "__init__"] == []
