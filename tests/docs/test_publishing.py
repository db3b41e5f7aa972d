"""What publishes a release: notes from the changelog, and workflows that only name what the repository has."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
if not WORKFLOWS:
    pytest.skip("needs the repository's .github, which distributions lack", allow_module_level=True)
notes = runpy.run_path(str(ROOT / ".ci" / "release_notes.py"))["notes"]
PROJECT = 'name = "cige"\nversion = "0.2.0"\n'
CHANGELOG = """# Changelog

## Unreleased

- later

## 0.2.0 (2026-12-01)

- new

### Fixed

- old

## 0.1.0

- first
"""


def test_notes_are_the_section_of_the_version():
    assert notes("v0.2.0", PROJECT, CHANGELOG) == "- new\n\n### Fixed\n\n- old\n"


@pytest.mark.parametrize(
    ("tag", "changelog", "told"),
    [
        ("v0.3.0", CHANGELOG, "is 0.2.0"),
        ("0.2.0", CHANGELOG, "is 0.2.0"),
        ("v0.2.0", "## 0.2.0\n\n## 0.1.0\n", "no section"),
    ],
)
def test_a_tag_that_does_not_fit_is_refused(tag, changelog, told):
    with pytest.raises(ValueError, match=told):
        notes(tag, PROJECT, changelog)


def test_the_newest_released_version_of_the_changelog_is_that_of_the_project():
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert newest is not None and version is not None and newest[1] == version[1]
    assert f"version: {version[1]}" in (ROOT / "CITATION.cff").read_text("utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_name_targets_files_and_versions_that_exist(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}  # jobs that write say so themselves
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for job in workflow["jobs"].values():
        called = job.get("uses")
        assert called is None or (ROOT / called).is_file()
        assert called is not None or job["timeout-minutes"] <= 60
        for step in job.get("steps", []):
            assert "run" in step or re.fullmatch(r"[\w./-]+@(v\d[\w.]*|release/v1)", step["uses"])
            words = step.get("run", "").split()
            if words[:1] == ["make"]:
                assert words[1] in targets
            for word in words:
                assert not word.endswith(".py") or (ROOT / word).is_file()
