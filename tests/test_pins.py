"""The pinned versions: those of the image are those that everything was tested with, and each has hashes."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = re.compile(r"([\w.-]+)==(\S+)")
DEPLOY = ROOT / "examples" / "deploy"


def pins(text: str) -> dict[str, str]:
    """Normalised name -> version."""
    lines = (NAME.match(line) for line in text.splitlines())
    return {re.sub(r"[-_.]+", "-", match[1]).lower(): match[2] for match in lines if match}


def test_the_packages_of_the_image_have_the_tested_versions_and_hashes():
    text = (DEPLOY / "requirements.txt").read_text(encoding="utf-8")
    of_image, tested = pins(text), pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert of_image.items() <= tested.items()
    assert {"numpy", "safetensors", "rich", "fastapi", "uvicorn", "uvloop", "setuptools"} <= of_image.keys()
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    requirements = re.split(r"\n(?=[A-Za-z])", body.strip())
    assert len(requirements) == len(of_image)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", requirement) for requirement in requirements)


def test_every_direct_requirement_of_the_server_is_in_the_image():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    core = re.search(r"^dependencies = \[(.*?)^\]", project, re.M | re.S)
    serve = re.search(r"^serve = \[(.*?)^\]", project, re.M | re.S)
    assert core is not None and serve is not None
    names = re.findall(r'"([A-Za-z][\w-]*)[><=]', core[1] + serve[1])
    of_image = pins((DEPLOY / "requirements.txt").read_text(encoding="utf-8"))
    assert len(names) >= 8 and {name.lower() for name in names} <= of_image.keys()


def test_the_image_installs_only_what_has_hashes():
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (locked, own) = re.findall(r"pip --python \S+ install ([^&]*)", dockerfile)
    assert "--require-hashes" in locked and "--requirement examples/deploy/requirements.txt" in " ".join(locked.split())
    assert "--no-deps" in own and "--no-build-isolation" in own and "serve" not in own
    assert "FROM ${BASE}" in dockerfile
    assert "!examples/deploy/requirements.txt" in (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8")
