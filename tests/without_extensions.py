"""What cige does without its extensions, as JSON: `without_extensions.py TREE`, where TREE is a copy without them.

One process does everything, since most of the time is spent on importing PyTorch and other packages.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pkgutil
import sys
from pathlib import Path
from typing import Any

import pytest

QUICK = ["tests/folders/test_manifest.py", "tests/recipes/test_shipped.py", "tests/test_cli.py"]
QUICK += ["tests/commands/test_predict.py"]
QUICK_NAMES = "manifest or names or unknown or predict_prints"


class Collected:
    """A plugin of pytest that keeps the names of tests and what went wrong."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.n_passed = 0
        self.wrong: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.wrong.append(f"{report.nodeid}: {report.longrepr}"[-2000:])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.files |= {item.nodeid.partition("::")[0] for item in items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.wrong.append(f"{report.nodeid}: {report.longrepr}"[-2000:])
        self.n_passed += report.passed and report.when == "call"


def modules_that_fail() -> dict[str, str]:
    """Every module of cige that cannot be imported, and why."""
    import cige

    failed = {}
    for found in pkgutil.walk_packages(cige.__path__, "cige."):
        if found.name.rpartition(".")[2] not in ("__main__", "vocabulary_loss_triton", "position_scores_triton"):
            try:
                importlib.import_module(found.name)
            except Exception as reason:
                failed[found.name] = repr(reason)
    return failed


def ran(*argv: str) -> tuple[object, str]:
    """The exit code of a command, and what it prints."""
    from cige.cli import main

    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as error:
        try:
            code = main(list(argv))
        except SystemExit as stop:  # argparse
            code = stop.code
    return code, out.getvalue() + error.getvalue()


def tested(*arguments: str) -> Collected:
    plugin = Collected()
    with contextlib.redirect_stdout(io.StringIO()):
        # Assertions are rewritten, as in the process that copied the tree: so the bytecode in the tree can be used.
        pytest.main([*arguments, "-p", "no:cacheprovider"], plugins=[plugin])
    return plugin


def main(tree: Path) -> dict[str, Any]:
    os.chdir(tree)
    import cige

    found: dict[str, Any] = {"cige": cige.__file__}
    found |= {name: ran(*argv) for name, argv in COMMANDS.items()}
    collected = tested("--collect-only", "tests")
    found["collected"] = sorted(collected.files), collected.wrong
    quick = tested("-k", QUICK_NAMES, *QUICK)
    found["quick"] = quick.n_passed, quick.wrong
    return found | {"failed": modules_that_fail()}


COMMANDS = {
    "help": ["--help"],
    "predict": ["predict", "罗氏公司在上海开会。", "--format", "jsonl"],
    "alias": ["pretrain", "run"],
    "recipes": ["recipes", "list", "weibo/flat", "search/*"],
    "recipe": ["recipes", "show", "pretrain/tiny"],
}
if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
