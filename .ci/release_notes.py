"""Prints the notes of a release: the section of its version in CHANGELOG.md.

    python .ci/release_notes.py v0.2.0

The exit status is 1 if the tag is not the version in pyproject.toml, or if the changelog has no section of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def notes(tag: str, project: str, changelog: str) -> str:
    """The section of the version that `tag` names, without its heading.

    Raises:
        ValueError: the tag and the version of the project differ, or the section is missing or empty.
    """
    version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    if version is None or tag != f"v{version[1]}":
        raise ValueError(f"tag {tag}: the version in pyproject.toml is {version[1] if version else 'missing'}")
    section = re.search(rf"^## {re.escape(tag[1:])}\b.*?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        raise ValueError(f"CHANGELOG.md has no section '## {tag[1:]}'")
    return section[1].strip() + "\n"


if __name__ == "__main__":
    try:
        sys.stdout.write(
            notes(sys.argv[1], (ROOT / "pyproject.toml").read_text("utf-8"), (ROOT / "CHANGELOG.md").read_text("utf-8"))
        )
    except ValueError as reason:
        sys.exit(str(reason))
