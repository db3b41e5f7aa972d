"""Run verbs as in an installation of the core alone, in which no package of an extra can be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from cige.extras import EXTRA_OF

OF_OTHERS = {"pandas": "ray"}  # packages that come with those of an extra, and are not imported by cige itself
WITHOUT = """
import contextlib, io, json, sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in ABSENT else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

ABSENT = set(json.loads(sys.argv[1]))
sys.meta_path[:] = map(Without, sys.meta_path)
from cige.cli import main
told = {}
for verb, argv in json.loads(sys.argv[2]).items():
    error = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
        try:
            code = main([verb, *argv])
        except SystemExit as stop:
            code = stop.code
        except BaseException as reason:
            code = repr(reason)
    told[verb] = code, error.getvalue()
print(json.dumps(told))
"""


def without_extras(commands: dict[str, list[str]], folder: Path) -> dict[str, tuple[object, str]]:
    """The exit code, or the exception, and what is on standard error, of each verb where no extra is installed."""
    given = [json.dumps([*EXTRA_OF, *OF_OTHERS]), json.dumps(commands)]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *given], cwd=folder, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
