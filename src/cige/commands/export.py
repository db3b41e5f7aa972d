"""Export a FLAT for ONNX Runtime, which runs it without PyTorch and with the same results.

Examples:
  cige export onnx my-folder
  cige export onnx runs/weibo/model my-folder --int8
  cige predict --model my-folder "罗氏公司总部设在瑞士巴塞尔。"
"""

from __future__ import annotations

import argparse

from cige.commands.options import flat_tagger_folder, folder_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "cige export [-h] [--int8] onnx [MODEL] OUT"
    parser.add_argument("format", choices=("onnx",), help="the runtime")
    parser.add_argument(
        "folders",
        metavar="[MODEL] OUT",
        nargs="+",
        help="model folder, hub id or `research` (default: the bundled model), and the folder to write",
    )
    parser.add_argument(
        "--int8", action="store_true", help="weights in 8 bits: a smaller model with slightly different scores"
    )
    parser.set_defaults(error=parser.error)


def run(args: argparse.Namespace) -> None:
    if len(args.folders) > 2:
        args.error(f"given {len(args.folders)} folders, expected [MODEL] OUT")
    *given, output = args.folders
    # Before torch is imported, so that a wrong name is reported at once.
    source = flat_tagger_folder(given[0] if given else None)
    from cige.models.model import LatticeModel
    from cige.runtime.export import export_onnx

    export_onnx(LatticeModel.load(source), output, int8=args.int8)
    print(f"{output}: {folder_bytes(output) / 1e6:.1f} MB")
