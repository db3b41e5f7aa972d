"""Describe a model and this installation.

Examples:
  cige info
  cige info --model runs/weibo/model --json
"""

from __future__ import annotations

import argparse
import platform
from typing import Any

from cige.json_text import to_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", "-m", metavar="M", help="model folder or hub id (default: the bundled news model)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of lines")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    facts = {"installation": _installation(), "model": _model(args.model)}
    if args.json:
        print(to_json(facts, indent=1))
        return
    for group in facts.values():
        width = max(map(len, group))
        for name, value in group.items():
            shown = to_json(value) if isinstance(value, dict | list) else value
            print(f"{name:<{width}}  {shown}")
        print()


def _installation() -> dict[str, Any]:
    from cige import __version__

    return {"cige": __version__, "python": platform.python_version()} | _torch()


def _torch() -> dict[str, Any]:
    try:
        import torch
    except ImportError:
        return {"torch": "not installed; a model exported for ONNX Runtime does without"}
    from cige.nn import native

    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "compiled kernels": native.level() or "none (slower)",
    }


def _model(name: str | None) -> dict[str, Any]:
    from cige.api import NER, load
    from cige.folders.hub import model_folder

    folder = model_folder(name)
    finder = load(folder)
    n_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    facts = {"model": str(folder), "megabytes": round(n_bytes / 1e6, 1), "labels": finder.labels}
    return facts | (
        _lattice_model(finder.model) if isinstance(finder, NER) else {"facts": getattr(finder, "facts", {})}
    )


def _lattice_model(model: Any) -> dict[str, Any]:
    """What a model that reads a lexicon has beside its labels."""
    return {
        "scheme": model.scheme,
        "lexicon words": len(model.lexicon),
        "user words": len(model.lexicon.user_words),
        "vocabulary": dict(zip(("characters", "bigrams", "words"), model.vocabulary.n_rows, strict=True)),
        "facts": model.facts,
    }
