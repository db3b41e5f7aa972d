"""Find model folders: the bundled one, folders on disk, and models on the Hugging Face hub."""

from __future__ import annotations

import re
import sys
from os import PathLike
from pathlib import Path
from typing import Any

from cige.errors import ModelError
from cige.folders.manifest import MANIFEST

_PACKAGE = Path(__file__).resolve().parents[1]
BUNDLED = _PACKAGE / "bundled"
"""The folder of the bundled model, whose sources all permit any use."""
RESEARCH = _PACKAGE / "bundled_research"
"""The folder of the model that was also trained on data sets whose licences permit research only or are not stated."""
SHIPPED = {"bundled": BUNDLED, "research": RESEARCH}
"""The models that are part of the package, by the names under which `cige.load` finds them."""
RUN_MODEL = "model"
"""The name of the model folder in the folder of a run of training or fine-tuning."""
_HUB_OPTIONS = {"revision", "token", "cache_dir", "local_files_only"}
_NEEDS_HUB = 'Models on the Hugging Face hub need huggingface_hub; pip install "cige[hub]"'
_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def is_bundled(folder: Path) -> bool:
    """Whether a folder is that of a model in the package or inside it."""
    whole = folder.resolve()
    return not {whole, *whole.parents}.isdisjoint(SHIPPED.values())


def model_folder(path_or_hub_id: str | PathLike[str] | None = None, **hub_options: Any) -> Path:
    """The folder of a model, which is downloaded from the hub if necessary.

    Args:
        path_or_hub_id: a model folder or the folder of a finished run; a hub id ("owner/name"); None for the bundled
            model; or "bundled" or "research" (SHIPPED), unless there is a folder with this name.
        hub_options: `revision`, `token`, `cache_dir` and `local_files_only` of huggingface_hub.snapshot_download.

    Raises:
        TypeError: another option was given.
        ModelError: there is no such folder, and no such model on the hub, the hub cannot be reached, or huggingface_hub
            is not installed.
    """
    unknown = sorted(hub_options.keys() - _HUB_OPTIONS)
    if unknown:
        raise TypeError(
            f"unexpected keyword argument {unknown[0]!r}; what a model reports (labels, types, min_score) is said in "
            "the call: ner(text, types=...)"
        )
    name = "bundled" if path_or_hub_id is None else str(path_or_hub_id)
    if name in SHIPPED and (path_or_hub_id is None or not Path(name).exists()):
        shipped = SHIPPED[name]
        if not (shipped / MANIFEST).is_file():
            raise ModelError(f"{shipped}: this copy of cige has no {name} model; name a model folder or a hub id")
        return shipped
    if not isinstance(path_or_hub_id, str | PathLike):
        raise ModelError(f"given {path_or_hub_id!r}; expected a model folder, or a hub id such as owner/name")
    if not str(path_or_hub_id):
        raise ModelError("the name of the model is empty; expected a model folder or a hub id such as owner/name")
    folder = Path(path_or_hub_id)
    try:
        is_there = folder.exists()
    except OSError as reason:  # such as a text in place of a name, which is too long for one
        expected = "expected a model folder, or a hub id such as owner/name"
        raise ModelError(f"{name:.80}: {reason.strerror or reason}; {expected}") from reason
    if folder.is_file():
        raise ModelError(f"{folder}: a file; expected the folder of a model, or a hub id such as owner/name")
    if is_there:
        of_run = folder / RUN_MODEL
        return of_run if (of_run / MANIFEST).is_file() and not (folder / MANIFEST).exists() else folder
    if not _HUB_ID.fullmatch(str(path_or_hub_id)):
        raise ModelError(
            f"{path_or_hub_id}: no such folder; expected a model folder, a hub id such as owner/name, or one of "
            f"{', '.join(SHIPPED)}"
        )

    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ModuleNotFoundError as missing:
        raise ModelError(f"{path_or_hub_id}: no such folder here. {_NEEDS_HUB}") from missing

    try:
        return Path(snapshot_download(str(path_or_hub_id), **hub_options))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as reason:
        raise ModelError(
            f"{path_or_hub_id}: no such folder here, and the hub did not give a model of that name ({_cause(reason)}); "
            "check the name, the network and your access"
        ) from reason


def _cause(reason: Exception) -> str:
    return next(iter(str(reason).strip().splitlines()), type(reason).__name__)


def push_folder(folder: Path, repo_id: str, *, private: bool, token: str | None, message: str) -> str:
    """Upload a model folder to the repository `repo_id`, which is created if necessary; returns the URL of the commit.
    Raises a ModelError if huggingface_hub is not installed, permission is denied, or the hub cannot be reached."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ModuleNotFoundError as missing:
        raise ModelError(_NEEDS_HUB) from missing

    api = HfApi(token=token)
    # Without a network, huggingface_hub raises errors of the HTTP library that its version uses, or an OSError.
    of_network = (sys.modules[name].HTTPError for name in ("httpx", "httpx2") if name in sys.modules)
    failures: tuple[type[Exception], ...] = (HfHubHTTPError, HFValidationError, OSError, *of_network)
    try:
        repo = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        return str(api.upload_folder(repo_id=repo, folder_path=folder, commit_message=message).commit_url)
    except failures as reason:
        raise ModelError(
            f"{repo_id}: the hub did not take the model ({_cause(reason)}); log in with `hf auth login` or give a "
            "token that may write, and check the name and the network"
        ) from reason
