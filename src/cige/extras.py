"""Extras: the packages that only some commands need, and the command that installs them in this installation.

Messages of the library name an extra as `pip install "cige[train]"`. cige is in no package index yet, so errors replace
that by a command which installs from where this cige was installed from.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from cige.json_text import JsonObject

_PACKAGES_OF = {
    "train": "torch yaml accelerate gensim optuna scipy tensorboard jieba triton",
    "bert": "transformers tokenizers",
    "plots": "matplotlib resvg_py",
    "onnx": "onnx onnxruntime",
    "serve": "fastapi uvicorn prometheus_client pydantic pydantic_core starlette httptools",
    "spacy": "spacy srsly",
    "hub": "huggingface_hub",
    "documents": "pyarrow",
    "ray": "ray",
    "spark": "pyspark",
    "sklearn": "sklearn",
    "completion": "argcomplete",
}
EXTRA_OF = {package: extra for extra, packages in _PACKAGES_OF.items() for package in packages.split()}
"""The extra that installs each package, by the name with which the package is imported."""
_CHECKOUT = Path(__file__).resolve().parents[2]
_NAMED = re.compile(r"""pip install (?P<quote>['"]?)cige\[(?P<extra>[\w,-]+)\](?P=quote)""")


def reason_of(command: str, error: ModuleNotFoundError) -> str | None:
    """What to say if `command` fails because a package is missing; None if no extra installs it."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(package)
    return None if extra is None else f"`{command}` needs {package}, which is not installed; {install_command(extra)}"


def as_installed(message: str) -> str:
    """The message, with the commands that install an extra in the form that works in this installation."""
    return _NAMED.sub(lambda match: install_command(match["extra"]), message)


def install_command(extra: str | None = None) -> str:
    """The command that installs cige, or an extra, from where it was installed from, with the pip of this Python."""
    return f"{_pip()} install {_source(f'[{extra}]' if extra else '')}"


def _pip() -> str:
    path = shutil.which("pip")
    is_own = path is not None and Path(path).parent == Path(sys.executable).parent
    return "pip" if is_own else f"{_quoted(sys.executable)} -m pip"


def _source(extra: str) -> str:
    """What to give to `pip install`, with `extra` ("[train]") in it: a folder, a file, an address, or the package."""
    try:
        origin: JsonObject = json.loads(distribution("cige").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        origin = {}
    url, subdirectory = str(origin.get("url", "")), origin.get("subdirectory")
    if vcs := origin.get("vcs_info"):
        revision = vcs.get("requested_revision") or vcs.get("commit_id")
        inside = f"#subdirectory={subdirectory}" if subdirectory else ""
        return f'"cige{extra} @ {vcs.get("vcs")}+{url}{f"@{revision}" if revision else ""}{inside}"'
    if url.startswith("file:"):
        path = Path(url2pathname(urlsplit(url).path)) / (subdirectory or "")
        if path.exists():
            editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
            return f"{editable}{_quoted(f'{path}{extra}', always=True)}"
    elif url:
        return f'"cige{extra} @ {url}"'
    if (_CHECKOUT / "pyproject.toml").is_file():  # used from a checkout that was not installed
        return f"-e {_quoted(f'{_CHECKOUT}{extra}', always=True)}"
    return f'"cige{extra}"'


def _quoted(text: str, *, always: bool = False) -> str:
    """`text` for a shell: in double quotes, which all shells know, or in single ones if it has characters for those."""
    if re.search(r'["$`\\!]', text) and sys.platform != "win32":
        import shlex

        return shlex.quote(text)
    return f'"{text}"' if always or re.search(r"[^\w./:\\-]", text) else text
